// The machine of PostgreSQL dies while guests are made, and its standby takes over: nothing that was acknowledged is lost, no
// job did anything twice, and nobody has to start the server again.
import assert from 'node:assert/strict'
import test from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { nodesAgree, ranOnce } from '../agree.mjs'
import { Visitor, launch } from '../browser.mjs'
import { Member, work } from '../crowd.mjs'
import * as lab from '../lab.mjs'
import { note, seconds } from '../measures.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Server } from '../server.mjs'
import { Pair } from '../standby.mjs'
import { story } from '../steps.mjs'

const zone = `failover.${lab.lab.zone}`
const NODES = ['node1']
const WORKERS = 4
/** As long as who watches over a database may need to see that it is gone. */
const UNSEEN = 2_000

test('PostgreSQL fails over to its standby', async t => {
  await lab.cleanLab()
  const pair = await Pair.open('failover')
  const { database } = pair
  const browser = await launch()
  const visitors = []
  let server
  t.after(async () => {
    await browser.close()
    await server?.stop()
    await pair.close()
  })
  server = await Server.start('failover', { '': { database_url: pair.url } })
  const step = story(t, visitors, server)
  const enters = async login => {
    const visitor = await Visitor.open(browser, server)
    visitors.push(visitor)
    return visitor.enter(login, lab.lab.password)
  }
  const [{ pid }, measured] = [server.process, {}]
  let alice, cookie, fields, kept, nodeIds

  await step('a node, and who makes guests there', async () => {
    alice = await enters('alice')
    const bob = await enters('bob')
    await pages.createZone(alice, zone)
    nodeIds = [(await pages.readyNode(alice, NODES[0])).split('/').at(-1)]
    await pages.fillRequest(bob, { name: `form.${zone}`, size: 'xxsmall' })
    fields = await bob.page.locator('main form[action="/guests"]').evaluate(element => Object.fromEntries(new FormData(element)))
    cookie = (await bob.context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ')
    // An open page would say on the console that its events ended, and that is no fault of it.
    for (const visitor of visitors) await visitor.page.goto('about:blank')
  })

  await step('its PostgreSQL dies in the middle of jobs, and its standby takes over', async () => {
    let over = false
    const members = Array.from({ length: WORKERS }, () => new Member(cookie, () => [server.url], { unready: true }))
    const crowd = Promise.all(members.map((member, index) => work(member, index, { fields, nodes: nodeIds, zone, end: () => over })))
    crowd.catch(() => {})
    const made = async () => Number(await database.rows("select count(*) from jobs where kind = 'guest_create' and state = 'done'"))
    await until('some guests to be made', async () => (await made()) >= WORKERS)
    await until('a guest half made', async () => (await database.rows(`select j.id from jobs j
      join job_steps begun on begun.job_id = j.id and begun.name = 'spawn' and begun.state = 'done'
      join job_steps next on next.job_id = j.id and next.name = 'routes' and next.state = 'pending'
      where j.kind = 'guest_create' and j.state = 'running'`)).length > 0, { pause: 5 })
    const ended = await made()
    await pair.lose()
    const died = performance.now()
    await until('the server to say that it is not ready', async () => (await fetch(`${server.url}/readyz`)).status === 503)
    assert.equal((await fetch(`${server.url}/healthz`)).status, 200, 'it lives')
    await sleep(UNSEEN)
    await pair.promote()
    const promoted = performance.now()
    await until('the server to be ready', async () => (await fetch(`${server.url}/readyz`)).ok, { pause: 20 })
    measured.ready = performance.now() - promoted
    await until('jobs to go on', async () => (await made()) > ended, { pause: 20 })
    measured.jobs = performance.now() - promoted
    measured.away = promoted - died
    await sleep(3_000)
    over = true
    const done = await crowd
    kept = done.map(one => one.kept)
    assert.deepEqual(done.flatMap(one => one.failed), [], 'what was asked for was made')
    assert.deepEqual(members.flatMap(member => member.faults), [])
    measured.made = done.reduce((all, one) => all + one.made, 0)
    measured.repeated = members.reduce((all, member) => all + member.repeated, 0)
  })

  await step('all jobs ended, and well', async () => {
    await until('no open job', async () => (await database.rows("select id from jobs where state in ('waiting', 'running', 'undoing')")).length === 0)
    const states = await database.rows('select state, count(*) from jobs group by state')
    assert.deepEqual(states.map(([state]) => state), ['done'], JSON.stringify(states))
    assert.equal(server.process.pid, pid, 'it is the same process')
  })

  await step('rows and nodes agree, and no job did anything twice', async () => {
    await nodesAgree(database, { kept, nodes: NODES, zone })
    await ranOnce(database, NODES)
  })

  await step('who was signed in still is', async () => {
    await alice.page.goto('/nodes')
    await alice.page.getByRole('heading', { level: 1, name: 'Compute nodes' }).waitFor()
  })

  await step('the measures', () => {
    note('PostgreSQL that fails over to a synchronous standby', [
      ['guests asked for and made meanwhile, lost', `${measured.made}, 0`],
      ['requests sent again while there was none', measured.repeated],
      ['from its death to the standby serving', seconds(measured.away)],
      ['from then until the server is ready', seconds(measured.ready)],
      ['from then until a job that was held up ends', seconds(measured.jobs)],
    ])
  })
})
