// A PostgreSQL that has a synchronous standby, at one address: what one gives to servers that must survive its machine.
// What was acknowledged is on both; the address follows whichever serves.
import { spawn } from 'node:child_process'
import { appendFileSync, chownSync, closeSync, mkdtempSync, openSync, readdirSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Database } from './database.mjs'
import { run, until } from './process.mjs'
import { Relay } from './relay.mjs'
import { freePort } from './server.mjs'

const VERSIONS = '/usr/lib/postgresql'
const version = readdirSync(VERSIONS).sort((one, other) => other - one)[0]
const tool = name => path.join(VERSIONS, version, 'bin', name)
/** PostgreSQL refuses root; this is whom Debian has for nobody. */
const [UID, GID] = process.getuid() === 0 ? [65534, 65534] : [process.getuid(), process.getgid()]

export class Pair {
  static async open(name) {
    const pair = new Pair()
    pair.folder = mkdtempSync(path.join(os.tmpdir(), `corpus-${name}-`))
    chownSync(pair.folder, UID, GID)
    pair.ports = { first: await freePort(), second: await freePort() }
    pair.running = {}
    try {
      await pair.#make()
    } catch (error) {
      await pair.close()
      throw error
    }
    return pair
  }

  async #make() {
    const [data, { first, second }] = [this.#data('first'), this.ports]
    await this.#as('initdb', ['-D', data, '-U', 'corpus', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync'])
    appendFileSync(path.join(data, 'postgresql.conf'), `listen_addresses = '127.0.0.1'\nunix_socket_directories = ''\nmax_connections = 200\nfsync = off\n`)
    await this.#start('first')
    await run(tool('createdb'), ['-h', '127.0.0.1', '-p', `${first}`, '-U', 'corpus', 'corpus'])
    await this.#as('pg_basebackup', ['-h', '127.0.0.1', '-p', `${first}`, '-U', 'corpus', '-D', this.#data('second'), '-R', '-X', 'stream', '--no-sync', '-c', 'fast'])
    await this.#start('second')
    this.relay = await Relay.open(`postgres://corpus@127.0.0.1:${first}/corpus`)
    this.url = this.relay.url
    this.database = Database.at(this.url)
    // Only of the first: alone, the second must not wait for a standby that it has not.
    await this.database.rows("alter system set synchronous_standby_names = '*'")
    await this.database.rows('select pg_reload_conf()')
    await until('the standby to be synchronous', async () => (await this.database.rows('select sync_state from pg_stat_replication')).join() === 'sync')
    this.other = { host: '127.0.0.1', port: second }
  }

  /** The first dies in the middle of what it does. */
  async lose() {
    this.running.first.kill('SIGQUIT')
    await this.running.first.ended
  }

  /** The second serves, at the address of the first. */
  async promote() {
    await this.#as('pg_ctl', ['promote', '-w', '-D', this.#data('second')])
    this.relay.target = this.other
  }

  async close() {
    await this.relay?.down()
    for (const one of Object.values(this.running)) {
      if (one.exitCode === null && one.signalCode === null) one.kill('SIGINT')
      await one.ended
    }
    rmSync(this.folder, { recursive: true, force: true })
  }

  #data(which) {
    return path.join(this.folder, which)
  }

  #as(name, args) {
    return run(tool(name), args, { uid: UID, gid: GID, cwd: '/' })
  }

  async #start(which) {
    const log = openSync(path.join(this.folder, `${which}.log`), 'a')
    const child = spawn(tool('postgres'), ['-D', this.#data(which), '-p', `${this.ports[which]}`], { uid: UID, gid: GID, cwd: '/', stdio: ['ignore', log, log] })
    closeSync(log)
    child.ended = new Promise(resolve => child.once('exit', resolve))
    this.running[which] = child
    await until(`the ${which} PostgreSQL`, () => run(tool('pg_isready'), ['-h', '127.0.0.1', '-p', `${this.ports[which]}`]).then(() => true))
  }
}
