// The sample of `make up`: what a new user would do first, done by the JSON API: two nodes of the lab
// linked and initialized, on each a guest of the environment `staging` of the project atlas, which share a
// name, and examples/static-site pushed to them. Leaves a repository that can be changed and pushed again.
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
const guestNames = ['sample', 'second'].map(word => `${word}.${zone}`)
const site = `site.${zone}`
const root = fileURLToPath(new URL('..', import.meta.url))
const repository = path.join(folder, 'site')
const key = path.join(folder, 'bob')

/** Somebody who is signed in, and asks the JSON API. */
class Person {
  static async signIn(login) {
    const person = new Person()
    const body = new URLSearchParams({ login, password: env.CORPUS_LAB_LDAP_PASSWORD, realm: 'ldap' })
    const answer = await fetch(`${url}/login`, { method: 'POST', redirect: 'manual', headers: { origin: url }, body })
    if (!answer.headers.has('location')) throw new Error(`${login} could not sign in: status ${answer.status}`)
    person.cookie = answer.headers.getSetCookie().map(cookie => cookie.split(';')[0]).join('; ')
    return person
  }

  /** An operation's answer; what was refused is an error that says why. */
  async ask(what, method, where, fields) {
    const headers = { cookie: this.cookie, origin: url, ...(fields && { 'content-type': 'application/json' }) }
    const answer = await fetch(`${url}/api/v1${where}`, { method, headers, body: fields && JSON.stringify(fields) })
    const body = await answer.json()
    if (answer.ok) return body
    const wrong = (body.errors ?? []).map(error => `${error.field}: ${error.detail}`)
    throw new Error(`${what}: ${[body.detail || body.title, ...wrong].join(' ')}`)
  }

  get(what, where) {
    return this.ask(what, 'GET', where)
  }

  post(what, where, fields = {}) {
    return this.ask(what, 'POST', where, fields)
  }

  /** The same for what a job does: waits for the job's end. */
  async done(what, where, fields) {
    const begun = await this.post(what, where, fields)
    for (const end = Date.now() + 180_000; Date.now() < end;) {
      const { line } = await this.get(what, `/jobs/${begun.job}?wait=10`)
      if (line.state === 'done') return begun
      if (line.ended_at) throw new Error(`${what}: the job is ${line.state}, see ${url}/jobs/${begun.job}`)
    }
    throw new Error(`${what} takes too long: see ${url}/jobs/${begun.job}`)
  }
}

/** Links and initializes a node; returns its id. */
async function readyNode(alice, address) {
  const { host_key } = await alice.get('read the host key', `/host-key?address=${address}`)
  const host = { address, host_key, password: env.CORPUS_LAB_NODE_PASSWORD, environments: ['dev', 'staging', 'prod'] }
  const { node } = await alice.done('link the node', '/nodes', host)
  await alice.done('initialize the node', `/nodes/${node}/initialize`)
  return node
}

/** When the node's first reading says that it takes guests. */
async function runningGuest(bob, name, node) {
  const guest = { name, project, environment: 'staging', size: 'xsmall', autostart: true, node }
  for (let tries = 0; ; tries++) {
    const made = await bob.done('request the guest', '/guests', guest).catch(error => error)
    if (!(made instanceof Error)) return made.guest
    if (tries === 50 || !/ node: /.test(made.message)) throw made
    await pause(200)
  }
}

async function repositoryOf(bob) {
  const page = await (await fetch(`${url}/projects/${project}/staging`, { headers: { cookie: bob.cookie } })).text()
  const remote = /ssh:\/\/git@[^\s<"]+\/staging/.exec(page)[0]
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

/** Asks until it is so. */
async function until(what, check) {
  for (let tries = 0; !await check(); tries++) {
    if (tries === 300) throw new Error(`waited a minute for ${what}`)
    await pause(200)
  }
}

/** A second guest beside the leader: what is live comes to it too, then both are given requests. */
async function share(bob, environment, guest) {
  await until('the first page to be live', async () => (await bob.get('read the environment', `${environment}/staging`)).summary.leader.live)
  await bob.done('set up the second guest', environment, { guest })
  await until('both guests to share the name', async () => {
    const { members } = await bob.get('read the balance', `${environment}/staging/balance`)
    return members.filter(member => member.in_balance).length === 2
  })
}

async function main() {
  await mkdir(folder, { recursive: true })
  await rm(path.join(folder, 'known_hosts'), { force: true })
  const alice = await Person.signIn('alice')
  const bob = await Person.signIn('bob')
  const nodes = await Promise.all([env.CORPUS_LAB_NODE1, env.CORPUS_LAB_NODE2].map(address => readyNode(alice, address)))
  await alice.post('add the zone', '/zones', { name: zone, access: 'all' })
  await Promise.all([key, `${key}.pub`].map(file => rm(file, { force: true })))
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'bob, of the sample', '-f', key])
  await bob.post('add the key', '/keys', { line: (await readFile(`${key}.pub`, 'utf8')).trim() })
  const [leader, second] = [await runningGuest(bob, guestNames[0], nodes[0]), await runningGuest(bob, guestNames[1], nodes[1])]
  const environment = `/projects/${project}/environments`
  await bob.done('set up the environment', environment, { guest: leader })
  await bob.done('attach the name', `${environment}/staging/names`, { name: site })
  await repositoryOf(bob)
  await share(bob, environment, second)
  await writeFile(path.join(folder, 'made'), `${site}\n`)
}

await main().catch(error => {
  console.error(`${error.message}${error.stderr ? `\n${error.stderr}` : ''}`)
  process.exitCode = 1
})
