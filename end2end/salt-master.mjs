// A Salt master of the controller: a process of its own beside the server, with its configuration.
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from './process.mjs'

const binary = process.env.CORPUS_TEST_SERVER ?? fileURLToPath(new URL('../target/corpus/corpus-server', import.meta.url))

export class SaltMaster {
  /** Starts the one of a server; `more` is in its surroundings. */
  constructor(server, more = {}) {
    const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !/^(CORPUS_|DATABASE_URL$)/.test(key)))
    this.folder = path.join(server.data, 'salt/master')
    this.process = spawn(binary, ['--config', path.join(server.folder, 'corpus.toml'), 'salt-master'], { env: { ...env, ...more }, stdio: ['ignore', 'inherit', 'inherit'] })
    this.over = new Promise(resolve => this.process.once('exit', (code, signal) => {
      // One that is not there any more would be seen by what waits for it only.
      this.ended = `the Salt master ended ${this.isToEnd ? 'as it was told' : 'by itself'}: ${signal ?? code}`
      if (!this.isToEnd) console.error(this.ended)
      resolve()
    }))
  }

  /** Ends it as its supervisor does, or kills it. */
  end(signal = 'SIGTERM') {
    this.isToEnd = true
    this.process.kill(signal)
    return this.over
  }

  /** The process of Salt itself, once it is started; it leads the group of all its processes. */
  async salt() {
    return Number((await run('pgrep', ['-P', `${this.process.pid}`, 'python3'])).trim().split('\n')[0])
  }

  /** Has Salt itself stand still, or go on: a master that nobody hears of. */
  async still(signal) {
    process.kill(-await this.salt(), signal)
  }

  /** The names of the minions that it would take. */
  minions() {
    return readdirSync(path.join(this.folder, 'pki/minions')).sort()
  }

  /** What its minions answer to `what`, by name: within so many seconds. */
  async ask(what, limit) {
    const packages = path.join(this.folder, 'packages', readdirSync(path.join(this.folder, 'packages'))[0])
    const code = `import json, sys; sys.path.insert(0, ${JSON.stringify(packages)})
import salt.client
said = salt.client.LocalClient(${JSON.stringify(path.join(this.folder, 'master'))}).cmd('*', ${JSON.stringify(what)}, timeout=${limit})
print(json.dumps(said, default=str))`
    return JSON.parse((await run('python3', ['-B', '-W', 'ignore', '-c', code], { timeout: 1000 * limit + 60_000 })).trim().split('\n').pop())
  }
}
