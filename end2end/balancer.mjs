// A reverse proxy before several servers, as docs/operating.md says that one is to be set up: it
// asks each server's /readyz, gives new requests to those that are ready, in turn, and asks the
// next one only when a connection was refused. Nothing else is tried twice.
import http from 'node:http'
import { until } from './process.mjs'

const LOOK_EVERY = 200

export class Balancer {
  static async open(urls) {
    const balancer = new Balancer()
    balancer.backends = urls.map(url => ({ url: new URL(url), ready: false }))
    balancer.turn = 0
    /** Answers of 5xx and broken requests, as their clients saw them. */
    balancer.faults = []
    balancer.served = 0
    balancer.looking = setInterval(() => balancer.look(), LOOK_EVERY)
    balancer.server = http.createServer((request, response) => balancer.pass(request, response).catch(error => {
      balancer.fail(request, response, error)
    }))
    await new Promise((resolve, reject) => balancer.server.once('error', reject).listen(0, '127.0.0.1', resolve))
    balancer.url = `http://127.0.0.1:${balancer.server.address().port}`
    await until('a ready server', () => balancer.ready().length === urls.length)
    return balancer
  }

  ready() {
    return this.backends.filter(backend => backend.ready)
  }

  async look() {
    await Promise.all(this.backends.map(async backend => {
      backend.ready = await fetch(new URL('/readyz', backend.url), { signal: AbortSignal.timeout(2000) }).then(answer => answer.ok, () => false)
    }))
  }

  fail(request, response, error) {
    this.faults.push(`${request.method} ${request.url}: ${error.message}`)
    if (response.headersSent) response.destroy()
    else response.writeHead(502).end('no server\n')
  }

  async pass(request, response) {
    const body = []
    for await (const piece of request) body.push(piece)
    const tried = this.ready()
    for (let left = tried.length; left > 0; left -= 1) {
      const backend = tried[this.turn++ % tried.length]
      try {
        return await this.ask(backend, request, Buffer.concat(body), response)
      } catch (error) {
        if (error.code !== 'ECONNREFUSED') throw error
        backend.ready = false
      }
    }
    throw new Error('no server is ready')
  }

  ask(backend, request, body, response) {
    return new Promise((resolve, reject) => {
      const { hostname, port } = backend.url
      const asked = http.request({ hostname, port, path: request.url, method: request.method, headers: { ...request.headers, connection: 'close' }, agent: false })
      asked.on('error', reject)
      asked.on('response', answer => {
        this.served += 1
        if (answer.statusCode >= 500) this.faults.push(`${answer.statusCode} to ${request.method} ${request.url}`)
        response.writeHead(answer.statusCode, answer.headers)
        answer.pipe(response)
        answer.on('end', resolve)
        answer.on('error', reject)
      })
      // A browser that leaves a stream leaves it here too.
      response.on('close', () => {
        asked.destroy()
        resolve()
      })
      asked.end(body)
    })
  }

  async close() {
    clearInterval(this.looking)
    this.server.closeAllConnections()
    await new Promise(resolve => this.server.close(resolve))
  }
}
