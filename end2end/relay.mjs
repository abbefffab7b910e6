// A TCP relay before a real service: closed, the service is down for the server under test, and
// for nobody else.
import net from 'node:net'

export class Relay {
  /** Relays to `host:port`, or to the host and port of a URL. */
  static async open(target) {
    const url = new URL(target.includes('://') ? target : `tcp://${target}`)
    const relay = new Relay()
    relay.target = { host: url.hostname, port: Number(url.port) }
    await relay.up()
    url.port = relay.port
    relay.url = url.href.replace(/\/$/, '')
    return relay
  }

  /** Takes connections; the first time at a free port, later at the same. */
  async up() {
    this.open = new Set()
    this.server = net.createServer(inner => this.connect(inner))
    await new Promise((resolve, reject) => this.server.once('error', reject).listen(this.port ?? 0, '127.0.0.1', resolve))
    this.port = this.server.address().port
  }

  connect(inner) {
    const outer = net.connect(this.target)
    for (const socket of [inner, outer]) {
      this.open.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        this.open.delete(socket)
        inner.destroy()
        outer.destroy()
      })
    }
    inner.pipe(outer).pipe(inner)
  }

  /** Refuses connections, and ends those there are. */
  async down() {
    for (const socket of this.open) socket.destroy()
    await new Promise(resolve => this.server.close(resolve))
  }
}
