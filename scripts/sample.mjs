// The sample of `make up`: what a new user would do first, done by the same forms: node1 of the lab
// linked and initialized, a guest with a name, an environment `staging` of the project atlas, and
// examples/static-site pushed to it. Leaves a repository that can be changed and pushed again.
//
// sample.mjs URL FOLDER    what the lab says is in the environment (`lab env`)
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const [url, folder] = process.argv.slice(2)
const env = process.env
const run = promisify(execFile)
const project = 'atlas'
const zone = env.CORPUS_LAB_DNS_ZONE
const guestName = `sample.${zone}`
const site = `site.${zone}`
const root = fileURLToPath(new URL('..', import.meta.url))
const repository = path.join(folder, 'site')
const key = path.join(folder, 'bob')

/** Somebody who is signed in. */
class Person {
  cookies = new Map()

  static async signIn(login) {
    const person = new Person()
    const there = await person.send('/login', { login, password: env.CORPUS_LAB_LDAP_PASSWORD, realm: 'ldap' })
    if (!there.location) throw new Error(`${login} could not sign in: ${there.wrong}`)
    return person
  }

  async ask(where, options = {}) {
    const headers = { cookie: [...this.cookies].map(pair => pair.join('=')).join('; '), origin: url, ...options.headers }
    const answer = await fetch(url + where, { redirect: 'manual', ...options, headers })
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie)
      this.cookies.set(name, value)
    }
    return { status: answer.status, location: answer.headers.get('location'), html: await answer.text() }
  }

  /** Sends a form; `location` is where it led to, `wrong` what was refused. */
  async send(where, fields) {
    const body = new URLSearchParams(Object.entries(fields).flatMap(([name, value]) => [value].flat().map(one => [name, one])))
    const answer = await this.ask(where, { method: 'POST', body })
    const summary = /id="error-summary"[\s\S]*?<\/div>/.exec(answer.html)?.[0] ?? ''
    return { ...answer, wrong: summary.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ').trim() }
  }

  /** The same for a form that must be taken. */
  async must(what, where, fields) {
    const answer = await this.send(where, fields)
    if (!answer.location) throw new Error(`${what}: ${answer.wrong || `status ${answer.status}`}`)
    return answer.location
  }

  /** Waits until the page says so. */
  async until(what, where, says, limit = 180_000) {
    const end = Date.now() + limit
    for (;;) {
      const { html } = await this.ask(where)
      if (says(html)) return html
      if (/class="head"[\s\S]*?class="status[^"]*"[^>]*>Failed</.test(html)) throw new Error(`${what} failed: see ${url}${where}`)
      if (Date.now() > end) throw new Error(`${what} takes too long: see ${url}${where}`)
      await pause(200)
    }
  }
}

const status = word => html => new RegExp(`class="head"[\\s\\S]*?class="status[^"]*"[^>]*>${word}<`).test(html)
const hidden = (html, name) => new RegExp(`name="${name}"[^>]* value="([^"]*)"`).exec(html)?.[1]
const optionOf = (html, field, text) => {
  const select = new RegExp(`<select[^>]*name="${field}"[\\s\\S]*?</select>`).exec(html)?.[0] ?? ''
  return [...select.matchAll(/<option[^>]*value="([^"]*)"[^>]*>([\s\S]*?)<\/option>/g)].find(([, , shown]) => shown.includes(text))?.[1]
}

async function readyNode(alice) {
  const address = env.CORPUS_LAB_NODE1
  const host = { address, port: '22', user: 'root', environments: ['dev', 'staging', 'prod'] }
  const seen = await alice.send('/nodes/link', { ...host, step: 'probe' })
  const host_key = hidden(seen.html, 'host_key')
  if (!host_key) throw new Error(`the host key of ${address} could not be read: ${seen.wrong}`)
  const node = await alice.must('link the node', '/nodes/link', { ...host, host_key, password: env.CORPUS_LAB_NODE_PASSWORD, step: 'confirm' })
  await alice.until('linking the node', node, status('Linked'))
  await alice.must('initialize the node', `${node}/initialize`, {})
  await alice.until('initializing the node', node, status('Ready'))
}

async function runningGuest(bob) {
  const form = await bob.until('a node that takes guests', '/guests/new', html => html.includes('name="name"'))
  const guest = await bob.must('request the guest', '/guests/new', {
    name: guestName, project: optionOf(form, 'project', project), environment: 'staging', size: 'xsmall', backing: 'overlayfs',
    driver: 'lxc', image: 'debian-12', mode: 'masterless', names: site, autostart: 'on',
  })
  await bob.until('making the guest', guest, status('Running'))
  await bob.until('attaching its name', guest, html => html.includes(site) && />Attached</.test(html))
  return guest.split('/').at(-1)
}

async function repositoryOf(bob) {
  const page = `/projects/${project}/staging`
  const html = await bob.until('setting up the environment', page, status('Nothing live yet'))
  const remote = /ssh:\/\/git@[^\s<"]+\/staging/.exec(html)[0]
  const git = (...args) => run('git', ['-C', repository, ...args])
  await rm(repository, { recursive: true, force: true })
  await cp(path.join(root, 'examples/static-site'), repository, { recursive: true })
  await git('init', '--quiet', '--initial-branch=main')
  const hosts = path.join(folder, 'known_hosts')
  await git('config', 'core.sshCommand', `ssh -i '${key}' -o IdentitiesOnly=yes -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile='${hosts}'`)
  await git('config', 'user.name', 'Bob')
  await git('config', 'user.email', `bob@${zone}`)
  await git('remote', 'add', 'staging', remote)
  await git('add', '--all')
  await git('commit', '--quiet', '--message', 'The first page')
  await git('push', '--quiet', 'staging', 'main')
}

async function main() {
  await mkdir(folder, { recursive: true })
  await rm(path.join(folder, 'known_hosts'), { force: true })
  const alice = await Person.signIn('alice')
  const bob = await Person.signIn('bob')
  await readyNode(alice)
  await alice.must('add the zone', '/dns', { name: zone, access: 'all' })
  await Promise.all([key, `${key}.pub`].map(file => rm(file, { force: true })))
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'bob, of the sample', '-f', key])
  await bob.must('add the key', '/keys', { line: (await readFile(`${key}.pub`, 'utf8')).trim() })
  const guest = await runningGuest(bob)
  await bob.must('set up the environment', `/projects/${project}/environments`, { guest: `staging:${guest}` })
  await repositoryOf(bob)
  await writeFile(path.join(folder, 'made'), `${site}\n`)
}

await main().catch(error => {
  console.error(`${error.message}${error.stderr ? `\n${error.stderr}` : ''}`)
  process.exitCode = 1
})
