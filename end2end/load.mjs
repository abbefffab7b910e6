// Visitors without end: so many requests a second by new connections and by kept ones, each counted, and each that failed
// kept with its time and its reason.
import http from 'node:http'

/** Begins to ask `address` for `host`; `stop()` tells what came of it, `mark()` what came of it since the last mark. */
export function visits(address, host, { rate = 200, keep = 8 } = {}) {
  const kept = new http.Agent({ keepAlive: true, maxSockets: keep })
  const fresh = new http.Agent({ keepAlive: false })
  const began = performance.now()
  let seen = { asked: 0, failed: [], again: 0, slowest: 0 }
  let under_way = 0, turn = 0, due = 0
  const idle = []
  const one = agent => {
    const at = performance.now()
    under_way += 1
    seen.asked += 1
    const mine = seen
    let ended = false
    const end = why => {
      if (ended) return
      ended = true
      under_way -= 1
      mine.slowest = Math.max(mine.slowest, performance.now() - at)
      if (why) mine.failed.push({ at: Math.round(at - began), why, kept: agent === kept })
      if (under_way === 0) idle.splice(0).forEach(then => then())
    }
    const request = http.get({ host: address, port: 80, path: '/', headers: { host }, agent, timeout: 10_000 }, answer => {
      answer.resume()
      answer.on('end', () => end(answer.statusCode === 200 ? '' : `status ${answer.statusCode}`))
      answer.on('error', error => end(error.message))
      answer.on('aborted', () => end('cut'))
    })
    // A kept connection that the proxy closed while the request was on its way was never seen by it: as browsers do.
    request.on('error', error => {
      if (error.code === 'ECONNRESET' && request.reusedSocket && !ended) {
        under_way -= 1
        mine.asked -= 1
        mine.again += 1
        ended = true
        return one(agent)
      }
      end(error.message)
    })
    request.on('timeout', () => request.destroy(new Error('no answer within 10 s')))
  }
  const timer = setInterval(() => {
    for (const now = performance.now(); due * (1000 / rate) < now - began; due += 1) one((turn += 1) % 2 ? kept : fresh)
  }, 5)
  return {
    mark() {
      const told = seen
      seen = { asked: 0, failed: [], again: 0, slowest: 0 }
      return told
    },
    async stop() {
      clearInterval(timer)
      if (under_way > 0) await new Promise(then => idle.push(then))
      kept.destroy()
      return seen
    },
  }
}
