// What visitors ask a name for: counted by the proxy of its node, shown as numbers, plots and a table, told by the
// command line; and each request as it ends, with the visitor's address cut and without its query.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const program = fileURLToPath(new URL('../../target/corpus/corpus', import.meta.url))
const NODE = 'node1'
const address = lab.lab.nodes[NODE]
const zone = `traffic.${lab.lab.zone}`
const [guestName, site] = [`web.${zone}`, `shop.${zone}`]
const page = '/projects/atlas/prod/traffic'
/** Answers 500 below /boom, 404 below /none, and what it is asked else. */
const SITE = `import http.server
class Site(http.server.BaseHTTPRequestHandler):
  def do_GET(self):
    status = 500 if self.path.startswith('/boom') else 404 if self.path.startswith('/none') else 200
    self.send_response(status); self.send_header('Content-Length', '2'); self.end_headers(); self.wfile.write(b'ok')
http.server.ThreadingHTTPServer(('', 80), Site).serve_forever()`

test('the traffic of an environment', async t => {
  await lab.cleanLab()
  const server = await Server.start('traffic')
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    following?.kill()
    await browser.close()
    await server.stop()
  })
  const step = story(t, visitors, server)
  let alice, bob, dave, following

  const enters = async login => {
    const visitor = await Visitor.open(browser, server)
    visitors.push(visitor)
    await visitor.enter(login, lab.lab.password)
    return visitor
  }
  const env = { HOME: path.join(server.folder, 'home'), PATH: '/usr/bin:/bin' }
  /** Runs the command line; gives how it ended and what it said. */
  const corpus = (args, input = '') => new Promise(resolve => {
    const child = execFile(program, args, { env, timeout: 60_000 }, (error, said, warned) => resolve({ code: error?.code ?? 0, said, warned }))
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
  const visit = place => lab.httpGet(address, site, { path: place })
  const traffic = async (span = 'hour') => JSON.parse((await bob.read(`/api/v1/projects/atlas/environments/prod/traffic?span=${span}`)).html)
  const tokenOf = async login => {
    const body = new URLSearchParams({ grant_type: 'password', username: login, password: lab.lab.password, client_id: 'traffic' })
    return (await (await fetch(`${server.url}/oauth/token`, { method: 'POST', body })).json()).access_token
  }

  await step('a site of prod, under a name', async () => {
    alice = await enters('alice')
    await pages.createZone(alice, zone)
    await pages.readyNode(alice, NODE)
    bob = await enters('bob')
    dave = await enters('dave')
    const key = await lab.makeKey(path.join(server.folder, 'bob'))
    await pages.addKey(bob, key.line)
    const guest = await pages.requestGuest(bob, { name: guestName, project: 'atlas', environment: 'prod', size: 'xxsmall' })
    const html = await pages.untilStatus(bob, guest, 'Running')
    await lab.pasted(pages.valueIn(html, 'ssh'), key.path, 'cat > /tmp/site.py; sudo systemd-run -q --unit=site python3 /tmp/site.py', { input: SITE })
    assert.match((await bob.read(page)).html, /No name leads here/)
    await pages.attach(bob, guest, site)
    await pages.nameIs(bob, guest, site, 'Attached')
    await until('the site to be served', async () => (await visit('/')).status === 200)
  })

  await step('requests are followed as they end, by the command line and on the page', async () => {
    mkdirSync(env.HOME, { recursive: true })
    const login = await corpus(['login', server.url, '--name', 'lab', '--token-file', '-'], await tokenOf('bob'))
    assert.equal(login.code, 0, login.warned)
    following = spawn(program, ['logs', '--access', '-f', 'atlas/prod'], { env })
    let said = ''
    following.stdout.on('data', data => (said += data))
    await bob.page.goto(page)
    await bob.alive()
    await bob.page.getByRole('button', { name: 'Follow', exact: true }).click()
    const seen = () => bob.page.locator('#access').innerText()
    await until('requests to be told', async () => {
      await visit('/cart?card=4111111111111111')
      return said.includes('GET /cart') && (await seen()).includes('GET /cart')
    }, { pause: 500 })
    const line = said.split('\n').find(one => one.includes('GET /cart'))
    assert.match(line, /^\d\d:\d\d:\d\d 200 \d+ ms \d+ bytes -- \d+\.\d+\.\d+\.0\/24 shop\.\S+ GET \/cart$/, 'the address is cut')
    assert.ok(!said.includes('4111') && !(await seen()).includes('4111'), 'a query leaves no node')
    // A name that nobody has, and what a terminal would obey.
    await lab.httpGet(address, 'nobody.example.org', { path: '/cart' }).catch(() => {})
    await visit('/%1b]0;owned%07/<script>')
    await until('the odd one to be told', async () => said.includes('owned'), { limit: 20_000 })
    assert.ok(!said.includes('\u001b') && !said.includes('nobody'), said)
    await bob.page.getByRole('button', { name: 'Stop', exact: true }).click()
    following.kill()
  })

  await step('they are counted a minute at a time', async () => {
    const before = (await traffic()).totals
    for (let count = 0; count < 20; count += 1) await visit('/')
    for (let count = 0; count < 3; count += 1) await visit(`/boom${count}?secret=1`)
    for (let count = 0; count < 5; count += 1) await visit('/none')
    const counted = await until('them to be counted', async () => {
      const now = await traffic()
      return now.totals.status_5xx >= before.status_5xx + 3 && now
    }, { limit: 240_000, pause: 2_000 })
    const { totals } = counted
    assert.ok(totals.status_2xx >= 20 && totals.status_4xx >= 5 && totals.bytes_out > 0 && totals.p95_ms > 0, JSON.stringify(totals))
    assert.deepEqual(counted.errors.slice(0, 3).map(error => [error.status, error.path, error.name]), [[500, '/boom2', site], [500, '/boom1', site], [500, '/boom0', site]])
    assert.ok(counted.points.length === 60 && counted.not_read.length === 0 && counted.names === 1)
    for (const span of ['day', 'week', 'month']) assert.ok((await traffic(span)).totals.requests >= totals.requests, span)
  })

  await step('the page shows numbers, plots and the same as a table', async () => {
    await bob.page.goto(page)
    for (const span of ['An hour', 'A day', 'A week', '30 days']) {
      await bob.page.getByRole('link', { name: span, exact: true }).click()
      await bob.page.locator('.tabs [aria-current=page]', { hasText: span }).waitFor()
      assert.equal(await bob.page.locator('#requests svg[role=img]').count(), 2)
      assert.ok(await bob.page.locator('#requests svg rect').count() > 0)
    }
    await bob.page.locator('#requests summary').first().click()
    assert.match(await bob.page.locator('#requests table').first().innerText(), /5xx/)
    assert.match(await bob.page.locator('#errors').innerText(), /GET \/boom2/)
    await bob.screenshot('traffic')
  })

  await step('the command line tells the same', async () => {
    const told = await corpus(['traffic', 'atlas/prod', '--span', 'hour'])
    assert.equal(told.code, 0, told.warned)
    assert.match(told.said, /STATUS 5XX/)
    assert.match(told.said, /\/boom2/)
    const { totals } = JSON.parse((await corpus(['traffic', 'atlas', 'prod', '--json'])).said)
    assert.ok(totals.requests >= 28)
  })

  await step('without JavaScript it is all there but the button', async () => {
    const plain = await Visitor.open(browser, server, { javaScriptEnabled: false, storageState: await bob.context.storageState() })
    visitors.push(plain)
    await plain.page.goto(page)
    assert.match(await plain.page.locator('#follow').innerText(), /corpus logs --access -f atlas\/prod/)
    assert.equal(await plain.page.getByRole('button', { name: 'Follow' }).count(), 0)
    assert.equal(await plain.page.locator('#requests svg[role=img]').count(), 2)
  })

  await step('of another project it is not there', async () => {
    for (const place of [page, '/projects/atlas/environments/prod/access/events', '/api/v1/projects/atlas/environments/prod/traffic', '/api/v1/projects/atlas/environments/prod/access/events']) {
      assert.equal((await dave.read(place)).status, 404, place)
    }
  })

  await step('no error in the log', () => {
    assert.deepEqual(server.errors(), [])
  })
})
