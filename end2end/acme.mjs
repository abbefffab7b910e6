// A directory of certificates for one test file (pebble): it asks the lab's DNS server where names lead, and the lab's
// nodes, at port 80, whether they are ours. Its own certificate is of an authority of its own.
import { spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { lab } from './lab.mjs'
import { run, until } from './process.mjs'
import { freePort } from './server.mjs'

const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']

export class Directory {
  /** Starts one; `variables` are of pebble, such as the part of good nonces that it refuses. */
  static async start(variables = {}) {
    const directory = new Directory()
    const folder = mkdtempSync(path.join(os.tmpdir(), 'corpus-directory-'))
    const at = name => path.join(folder, name)
    Object.assign(directory, { folder, authority: at('authority.pem'), log: at('pebble.log') })
    await run('openssl', ['req', '-x509', ...newKey, '-subj', '/CN=directory', '-addext', 'basicConstraints=critical,CA:TRUE', '-keyout', at('authority.key'), '-out', directory.authority])
    await run('openssl', ['req', '-x509', ...newKey, '-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-addext', 'basicConstraints=critical,CA:FALSE',
      '-CA', directory.authority, '-CAkey', at('authority.key'), '-keyout', at('own.key'), '-out', at('own.pem')])
    const [port, management] = [await freePort(), await freePort()]
    directory.url = `https://127.0.0.1:${port}/dir`
    directory.management = `https://127.0.0.1:${management}`
    writeFileSync(at('pebble.json'), JSON.stringify({
      pebble: {
        listenAddress: `127.0.0.1:${port}`,
        managementListenAddress: `127.0.0.1:${management}`,
        certificate: at('own.pem'),
        privateKey: at('own.key'),
        httpPort: 80,
        tlsPort: 443,
        ocspResponderURL: '',
        externalAccountBindingRequired: false,
      },
    }))
    const log = openSync(directory.log, 'a')
    directory.process = spawn('pebble', ['-strict', '-config', at('pebble.json'), '-dnsserver', lab.env.CORPUS_LAB_DNS], {
      env: { ...process.env, PEBBLE_VA_NOSLEEP: '1', PEBBLE_AUTHZREUSE: '0', PEBBLE_WFE_NONCEREJECT: '5', ...variables },
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    directory.ended = new Promise(resolve => directory.process.once('exit', resolve).once('error', resolve))
    await until('the directory of certificates', () => directory.ask(directory.url))
    return directory
  }

  /** What of the server's configuration leads to it. */
  get settings() {
    return { issuer: 'acme', directory: this.url, ca_file: this.authority, contact: 'admin@example.org' }
  }

  ask(url) {
    return run('curl', ['-sSf', '--noproxy', '*', '-m', '5', '--cacert', this.authority, url])
  }

  /** The root of what it signs, as PEM. */
  root() {
    return this.ask(`${this.management}/roots/0`)
  }

  text() {
    return readFileSync(this.log, 'utf8')
  }

  /** It does not answer any more. */
  async down() {
    this.process.kill()
    await this.ended
  }

  async stop() {
    await this.down()
    rmSync(this.folder, { recursive: true, force: true })
  }
}
