// A repository on this machine, and pushes from it by the real git and ssh, as a member's.
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from './process.mjs'

const examples = fileURLToPath(new URL('../examples', import.meta.url))

/** The ssh that git is to use: with this key only, whatever the machine's own configuration says. */
const sshWith = (key, knownHosts) => ['ssh', '-F', '/dev/null', '-i', key, '-o', 'BatchMode=yes', '-o', 'IdentitiesOnly=yes',
  '-o', 'ConnectTimeout=5', '-o', 'KexAlgorithms=curve25519-sha256', '-o', 'StrictHostKeyChecking=accept-new',
  '-o', `UserKnownHostsFile=${knownHosts}`].join(' ')

export class Repository {
  constructor(folder, key) {
    this.folder = folder
    this.key = key
  }

  /** A new repository with one commit: an example, or what `fill` writes into its folder. */
  static async make(folder, key, { example, fill } = {}) {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    if (example) cpSync(path.join(examples, example), folder, { recursive: true })
    const repository = new Repository(folder, key)
    await repository.git('init', '--quiet', '--initial-branch=main')
    await repository.git('config', 'user.name', 'A Member')
    await repository.git('config', 'user.email', 'member@corpus.test')
    fill?.(folder)
    await repository.commit('The first')
    return repository
  }

  git(...args) {
    return run('git', ['-C', this.folder, ...args])
  }

  /** Commits all that there is; returns the id. */
  async commit(message) {
    await this.git('add', '--all')
    await this.git('commit', '--quiet', '--allow-empty', '--message', message)
    return (await this.git('rev-parse', 'HEAD')).trim()
  }

  /** Pushes; resolves with the exit code, all that was said, and the milliseconds, also of a refused one. */
  push(url, refs = ['main'], { key = this.key, timeout = 120_000, signal } = {}) {
    const begin = performance.now()
    const env = { PATH: process.env.PATH, HOME: this.folder, LC_ALL: 'C', GIT_SSH_COMMAND: sshWith(key, path.join(this.folder, '.git/known_hosts')) }
    return new Promise(resolve => {
      const child = execFile('git', ['-C', this.folder, 'push', url, ...refs], { env, timeout, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
        const code = error ? (error.code ?? -1) : 0
        resolve({ code, text: `${stdout}${stderr}`, ms: performance.now() - begin })
      })
      signal?.addEventListener('abort', () => child.kill('SIGKILL'))
    })
  }
}
