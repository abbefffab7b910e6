// Somebody who only visits: whatever is asked of the proxy, it counts for the name that it was routed by, fills no table,
// and writes to nobody's page or terminal.
import assert from 'node:assert/strict'
import net from 'node:net'
import { NODE, lab, until } from './world.mjs'

const address = lab.lab.nodes[NODE]
const OF_ATTACKER = '/projects/borealis/environments/dev'
const OF_VICTIM = '/projects/atlas/environments/prod'

/** Sends bytes to the proxy; gives what comes back within a while. */
const sends = bytes => new Promise(resolve => {
  const socket = net.connect(80, address)
  let said = ''
  const end = () => { socket.destroy(); resolve(said) }
  socket.setTimeout(3000, end)
  socket.on('data', data => (said += data)).on('close', end).on('error', end)
  socket.end(bytes)
})
const request = (line, host, more = '') => `${line} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${more}\r\n`

/** What a member hears who follows, until `work` is done and `heard` is satisfied. */
async function followed(session, place, work, heard) {
  const cookie = [...session.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const ending = new AbortController()
  const answer = await fetch(`${session.url}${place}/access/events`, { headers: { cookie }, signal: ending.signal })
  assert.equal(answer.status, 200)
  let text = ''
  const reading = (async () => {
    for await (const part of answer.body) text += Buffer.from(part).toString('utf8')
  })().catch(() => {})
  try {
    await until('it to be heard', async () => {
      await work()
      return heard(text)
    }, { limit: 40_000, pause: 1000 })
  } finally {
    ending.abort()
    await reading
  }
  return text
}

export async function attacks(attack, world) {
  const { bob, mallory } = world
  const traffic = async (session, place) => JSON.parse((await session.get(`/api/v1${place}/traffic?span=hour`)).html)

  await attack('writes to the terminal and the page of who follows, and forges a line', async () => {
    const paths = ['/\u001b[2J\u001b]0;owned\u0007', '/%1b%5b2J', '/<script>alert(1)</script>', '/"\'}]},{"number":9', '/ 200 1 ms', `/${'x'.repeat(5000)}`, '/\u202e\u00ff', '/a\tb']
    const odd = () => Promise.all(paths.flatMap(path => [sends(request(`GET ${path}`, world.evil)), sends(request(`GET\u001b[1m ${path}`, world.evil))]))
    const text = await followed(mallory, OF_ATTACKER, async () => {
      await odd()
      await sends(request('GET /last', world.evil))
    }, heard => heard.includes('/last'))
    assert.ok(![...text].some(char => char < ' ' && char !== '\n'), 'no byte steers a terminal')
    for (const data of text.split('\n').filter(line => line.startsWith('data:'))) {
      const { lines } = JSON.parse(data.slice(5))
      for (const line of lines) {
        assert.ok(line.name === world.evil && Buffer.byteLength(line.path) <= 203 && line.method.length <= 16, JSON.stringify(line))
        assert.match(line.from, /^[0-9.]+\.0\/24$/, 'the address is cut')
      }
    }
    const { html } = await mallory.get('/projects/borealis/dev/traffic')
    assert.ok(!html.includes('<script>alert(1)'), 'what he asks for is text')
  })

  await attack('a member hears nothing of the visitors of another\'s name', async () => {
    const text = await followed(mallory, OF_ATTACKER, async () => {
      await sends(request('GET /only-the-victims', world.site))
      await sends(request('GET /own', world.evil, `X-Forwarded-Host: ${world.site}\r\n`))
    }, heard => heard.includes('/own'))
    assert.ok(!text.includes(world.site) && !text.includes('only-the-victims'))
  })

  await attack('counts under another\'s name, and fills the tables with names that nobody has', async () => {
    const before = await traffic(bob, OF_VICTIM)
    const forged = [
      request('GET /forged', world.evil, `X-Forwarded-Host: ${world.site}\r\nForwarded: host=${world.site}\r\n`),
      request(`GET http://${world.site}/forged`, world.evil),
      `GET /forged HTTP/1.1\r\nHost: ${world.evil}\r\nHost: ${world.site}\r\n\r\n`,
      request('GET /forged', `${world.site}.`), request('GET /forged', ` ${world.site} x`), request('GET /forged', `${world.site}@${world.evil}`),
    ]
    for (const bytes of forged) await sends(bytes)
    for (let round = 0; round < 10; round += 1) {
      await Promise.all(Array.from({ length: 50 }, (_, number) => sends(request('GET /', `x${round}-${number}.nobody.example`))))
    }
    const own = (await traffic(mallory, OF_ATTACKER)).totals.requests
    await until('the attacker\'s own to be counted', async () => {
      await sends(request('GET /', world.evil))
      return (await traffic(mallory, OF_ATTACKER)).totals.requests > own
    }, { limit: 240_000, pause: 5000 })
    const after = await traffic(bob, OF_VICTIM)
    // Whatever goes to the victim's guest counts for it; nothing else does.
    assert.ok(after.totals.requests - before.totals.requests < 60, 'names that nobody has count for none')
    const [[minutes]] = await world.database.rows("select count(*) from traffic_minutes where at > now() - interval '1 hour'")
    assert.ok(Number(minutes) <= 2 * 61, `${minutes} rows of two environments`)
    const [[errors]] = await world.database.rows('select coalesce(max(number), 0) from (select count(*) as number from traffic_errors group by project_id, environment) counted')
    assert.ok(Number(errors) <= 50)
  })
}
