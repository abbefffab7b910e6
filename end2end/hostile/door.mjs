// Who stands at the door and lets nobody else in: strangers and members with more requests, connections and attempts
// than a server can bear.
import assert from 'node:assert/strict'
import net from 'node:net'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from './world.mjs'

const median = numbers => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]

export async function attacks(attack, world) {
  const { bob, mallory, victim, server } = world
  const { hostname, port } = new URL(server.url)
  const quick = async (session = bob) => {
    const answer = await session.get(victim.place)
    assert.equal(answer.status, 200)
    return answer.ms
  }
  /** Many sockets that say `text` and no more; closed at the end of `work`. */
  async function held(count, text, work, to = Number(port)) {
    const sockets = []
    try {
      for (let number = 0; number < count; number += 1) {
        const socket = net.connect({ host: hostname, port: to }, () => { if (text) socket.write(text) })
        socket.ended = new Promise(resolve => socket.on('error', () => {}).on('close', resolve))
        socket.resume()
        sockets.push(socket)
        if (number % 100 === 99) await sleep(5)
      }
      await sleep(300)
      return await work(sockets)
    } finally {
      for (const socket of sockets) socket.destroy()
    }
  }

  // A byte now and then, while the others attack.
  const slow = Array.from({ length: 3 }, () => net.connect({ host: hostname, port: Number(port) }, function () { this.write('GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ') }))
  const begun = performance.now()
  const slowEnded = Promise.all(slow.map(socket => new Promise(resolve => socket.on('error', () => {}).on('close', resolve).resume()))).then(() => true)
  const dripping = setInterval(() => { for (const socket of slow) if (!socket.destroyed) socket.write('x') }, 500)

  await attack('asks 60 times at once for a page of a project', async () => {
    const answers = await Promise.all(Array.from({ length: 120 }, (_, number) => (number % 2 ? bob : world.carol).get('/projects/atlas')))
    assert.deepEqual([...new Set(answers.map(answer => answer.status))], [200])
  })

  await attack('asks 60 times at once for every page', async () => {
    const statuses = new Set()
    for (const page of ['/', '/guests', '/nodes', '/jobs', '/deployments', '/projects', '/dns', '/keys', victim.place, world.node]) {
      for (const answer of await Promise.all(Array.from({ length: 60 }, () => bob.get(page)))) statuses.add(answer.status)
    }
    assert.deepEqual([...statuses], [200])
  })

  await attack('opens 1,500 connections and says nothing, or half of a request', async () => {
    const before = median(await Promise.all([quick(), quick(), quick()]))
    await held(750, '', () => held(750, 'POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 10', async () => {
      for (let count = 0; count < 5; count += 1) assert.ok(await quick() < 10 * before + 1000)
    }))
  })

  await attack('sends a login of a megabyte, and a password where the login goes', async () => {
    const typed = `Geheim-${'x'.repeat(12)}!? 7`
    for (const login of ['a'.repeat(1 << 20), typed, 'bob\u0000', '\u001b[2J']) {
      const answer = await world.session('192.0.2.80').signIn(login, 'wrong')
      assert.ok([400, 401, 403, 413, 422, 429].includes(answer.status), `${answer.status}`)
    }
    assert.ok(!server.text().includes(typed), 'what was typed as a login and is none is in the log')
    assert.ok(!server.text().includes('a'.repeat(2000)))
  })

  await attack('fills the audit with refused logins', async () => {
    const rows = async () => Number((await world.database.rows("select count(*) from audit where action like '%login%' or action like '%sign%'"))[0][0])
    const before = await rows()
    await Promise.all(Array.from({ length: 150 }, (_, number) => world.session(`198.51.${number % 100}.${number}`).signIn(`nobody${number % 3}`, 'wrong')))
    const grown = await rows() - before
    assert.ok(grown < 30, `150 refused logins made ${grown} rows`)
  })

  await attack('follows 200 streams of events, and others still follow theirs', async () => {
    const [[job]] = await world.database.rows(`select id from jobs where guest_id = '${world.attacker.id}' order by queue_order limit 1`)
    const cookie = [...mallory.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    await held(200, `GET /jobs/${job}/events HTTP/1.1\r\nHost: ${hostname}:${port}\r\nCookie: ${cookie}\r\n\r\n`, async () => {
      await until('a quick page', async () => await quick() < 1000)
      for (let count = 0; count < 5; count += 1) assert.ok(await quick() < 2000)
    })
  })

  await attack('opens 300 connections to the git server, and others still push', async () => {
    const git = Number([...readFileSync(`${server.folder}/corpus.toml`, 'utf8').matchAll(/listen = "127\.0\.0\.1:(\d+)"/g)][1][1])
    await held(300, 'SSH-2.0-hostile\r\n', async () => {
      const banner = await new Promise((resolve, reject) => {
        const socket = net.connect({ host: hostname, port: git, localAddress: '127.0.0.9' })
        socket.once('data', data => { resolve(String(data)); socket.destroy() }).once('error', reject).once('close', () => resolve('closed'))
        setTimeout(() => reject(new Error('no banner')), 5000).unref()
      })
      assert.match(banner, /^SSH-2/)
    }, git)
  })

  await attack('sends a body without end', async () => {
    const answer = await mallory.post('/keys', { line: 'x'.repeat(20 << 20) }).catch(error => ({ status: error.code }))
    assert.ok([413, 'ECONNRESET', 'EPIPE'].includes(answer.status), `${answer.status}`)
  })

  await attack('has the server run out of file descriptors', () => {
    const [, soft, hard] = /^Max open files\s+(\d+)\s+(\d+)/m.exec(readFileSync(`/proc/${server.process.pid}/limits`, 'utf8'))
    assert.equal(soft, hard, 'as many as the system allows')
  })

  await attack('keeps a connection for ever with a byte now and then', async () => {
    const ended = await Promise.race([slowEnded, sleep(Math.max(0, 40_000 - (performance.now() - begun)), false)])
    clearInterval(dripping)
    for (const socket of slow) socket.destroy()
    assert.ok(ended, 'it is open after 40 s')
  })

  await attack('and afterwards all is as fast as before', async () => {
    await until('a quick page', async () => await quick() < 1000)
    assert.equal(await world.page(), 'the victim')
  })
}
