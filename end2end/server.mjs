// A Corpus server for one test file: its own folder, port, database and seal key, the lab's
// directory and DNS. What it logs is kept, and errors in it fail the test.
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { lab } from './lab.mjs'
import { until } from './process.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const built = name => path.join(root, 'target/corpus', name)
const { CORPUS_TEST_SERVER, CORPUS_SITE_FOLDER, CORPUS_AGENT_BINARY, CORPUS_IMAGE_FOLDER, CORPUS_SALT_BUNDLE } = process.env

/** Where tests leave what a person may want to look at. */
export const out = path.join(root, 'end2end/out')

function configuration(folder, data, [port, gitPort], changes) {
  const { env } = lab
  const settings = {
    '': {
      listen: `127.0.0.1:${port}`,
      public_url: `http://127.0.0.1:${port}`,
      site_folder: CORPUS_SITE_FOLDER ?? built('site'),
      agent_binary: CORPUS_AGENT_BINARY ?? built('agent/corpus-agent-x86_64'),
      image_folder: CORPUS_IMAGE_FOLDER ?? path.dirname(env.CORPUS_LAB_IMAGE),
      guest_backups: path.join(folder, 'guest-backups'),
      data_folder: data,
      seal_key_file: path.join(folder, 'seal.key'),
      ...(CORPUS_SALT_BUNDLE && { salt_bundle: CORPUS_SALT_BUNDLE }),
    },
    certificates: {},
    access_log: {},
    guest_mail: {},
    salt_master: {},
    backup: {},
    git: { listen: `127.0.0.1:${gitPort}` },
    projects: { create: 'ops' },
    log: { format: 'json' },
    ldap: {
      url: env.CORPUS_LAB_LDAPS_URL,
      ca_file: env.CORPUS_LAB_LDAP_CA,
      bind_dn: env.CORPUS_LAB_LDAP_BIND_DN,
      bind_password: env.CORPUS_LAB_LDAP_BIND_PASSWORD,
      people_base: env.CORPUS_LAB_LDAP_PEOPLE_BASE,
      people_filter: env.CORPUS_LAB_LDAP_USER_FILTER,
      disabled_filter: env.CORPUS_LAB_LDAP_DISABLED_FILTER,
      groups_base: env.CORPUS_LAB_LDAP_GROUP_BASE,
      groups_filter: env.CORPUS_LAB_LDAP_GROUP_FILTER,
      ops_group: 'corpus-ops',
      project_group_pattern: 'project-{project}-{role}s',
    },
    dns: {
      api_url: env.CORPUS_LAB_DNS_API,
      api_key: env.CORPUS_LAB_DNS_API_KEY,
      server: env.CORPUS_LAB_DNS,
      resolver_server: env.CORPUS_LAB_DNS_OF_NODES,
      nameservers: [`ns1.${lab.zone}`],
      server_id: 'localhost',
    },
  }
  // A server of an earlier release refuses keys that it does not know.
  const unknown = (process.env.CORPUS_TEST_UNKNOWN_KEYS ?? '').split(' ')
  const table = ([name, own]) => {
    const values = Object.entries({ ...own, ...changes[name] }).filter(([key]) => !unknown.includes(`${name}.${key}`))
    return [name && values.length > 0 && `\n[${name}]`, ...values.map(([key, value]) => `${key} = ${JSON.stringify(value)}`)].filter(Boolean)
  }
  return `${Object.entries(settings).flatMap(table).join('\n')}\n`
}

/** A free port below those that the kernel gives to connections: what another test opens meanwhile never takes it. */
export async function freePort() {
  for (let tries = 0; tries < 100; tries += 1) {
    const port = randomInt(20_000, 30_000)
    const probe = net.createServer()
    const free = await new Promise(resolve => probe.on('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true)))
    if (!free) continue
    await new Promise(resolve => probe.close(resolve))
    return port
  }
  throw new Error('none of a hundred ports was free')
}

export class Server {
  constructor(folder, data, port, gitPort) {
    this.folder = folder
    this.data = data
    this.gitPort = gitPort
    this.url = `http://127.0.0.1:${port}`
    this.log = path.join(folder, 'corpus.log')
    this.starts = 0
  }

  /** Starts a server of its own; `changes` are settings by table, such as `{ dns: { api_url } }`. */
  static async start(name, changes = {}) {
    const folder = path.join(out, name)
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    // Its PostgreSQL runs as another user, who must reach its folder.
    const data = mkdtempSync(path.join(os.tmpdir(), `corpus-${name}-`))
    chmodSync(data, 0o755)
    const [port, gitPort] = [await freePort(), await freePort()]
    writeFileSync(path.join(folder, 'corpus.toml'), configuration(folder, data, [port, gitPort], changes), { mode: 0o600 })
    const server = new Server(folder, data, port, gitPort)
    await server.run().catch(error => {
      rmSync(data, { recursive: true, force: true })
      throw error
    })
    return server
  }

  /** Starts the process, and waits until it is ready. */
  async run() {
    const log = openSync(this.log, 'a')
    // The variables of scripts and of other tests are no settings of this server.
    const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !/^(CORPUS_|DATABASE_URL$)/.test(key)))
    this.process = spawn(CORPUS_TEST_SERVER ?? built('corpus-server'), ['--config', path.join(this.folder, 'corpus.toml')], {
      env,
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    this.starts += 1
    this.ended = new Promise(resolve => this.process.once('exit', resolve))
    this.process.once('exit', () => (this.gone = true))
    this.gone = false
    await until('the server to be ready', async () => {
      if (this.gone) return true
      return (await fetch(`${this.url}/readyz`)).ok
    }, { limit: 60_000 })
    if (this.gone) throw new Error(`the server ended at its start, its log: ${this.log}\n${this.text().slice(-2000)}`)
  }

  /** Everything logged so far. */
  text() {
    return readFileSync(this.log, 'utf8')
  }

  /** The lines logged as errors, and panics. */
  errors() {
    return this.text().split('\n').filter(line => /"level":\s*"ERROR"/.test(line) || line.includes('panicked at'))
  }

  /** The password of the local administrator, which is printed once at the first start. */
  administrator() {
    const line = this.text().split('\n').find(found => /administrator/i.test(found) && /password/i.test(found))
    return line && /password[^A-Za-z0-9]+(?:is\s+)?([A-Za-z0-9]{12,})/i.exec(line)?.[1]
  }

  /** Its name in the leases of jobs, a new one at each start. */
  instance() {
    return [...this.text().matchAll(/"instance":"([0-9a-f-]{36})"/g)].at(-1)[1]
  }

  /** Resident memory in bytes. */
  resident() {
    const pages = readFileSync(`/proc/${this.process.pid}/status`, 'utf8')
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(pages)[1]) * 1024
  }

  /** Processor time used so far, in clock ticks. */
  ticks() {
    const fields = readFileSync(`/proc/${this.process.pid}/stat`, 'utf8').split(') ')[1].split(' ')
    return Number(fields[11]) + Number(fields[12])
  }

  /** Kills it as a power cut would. */
  async kill() {
    this.process.kill('SIGKILL')
    await this.ended
  }

  /** Asks it to end, and insists after a while. After a failure its log and database are kept. */
  async stop() {
    if (!this.gone) {
      this.process.kill('SIGTERM')
      const insist = setTimeout(() => this.process.kill('SIGKILL'), 30_000)
      await this.ended
      clearTimeout(insist)
    }
    if (this.failed) console.log(`kept: the log ${this.log}, the database in ${this.data}`)
    else rmSync(this.data, { recursive: true, force: true })
  }
}
