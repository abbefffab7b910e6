// Three servers on one PostgreSQL, as one: whichever a browser talks to, whichever dies.
// CORPUS_TEST_SERVERS_SECONDS is how long servers are killed under load.
import assert from 'node:assert/strict'
import test from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { nodesAgree, ranOnce } from '../agree.mjs'
import { Balancer } from '../balancer.mjs'
import { Visitor, launch } from '../browser.mjs'
import { Member, work } from '../crowd.mjs'
import { Database } from '../database.mjs'
import * as lab from '../lab.mjs'
import { note, seconds } from '../measures.mjs'
import * as pages from '../pages.mjs'
import { timed, until } from '../process.mjs'
import { Relay } from '../relay.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const SECONDS = Number(process.env.CORPUS_TEST_SERVERS_SECONDS ?? 15)
const WORKERS = 6
/** Between two deaths. */
const KILL_EVERY = 5_000
const zone = `servers.${lab.lab.zone}`
const NODES = ['node1', 'node2']

const median = numbers => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]

test('three servers on one PostgreSQL', async t => {
  await lab.cleanLab()
  const database = await Database.make('corpus_servers')
  const servers = []
  const browser = await launch()
  const visitors = []
  const measured = { adopted: [] }
  t.after(async () => {
    await browser.close()
    await Promise.all([...servers, alone].map(server => server?.stop()))
    if (servers.some(server => server.failed)) console.log(`kept: the database ${database.url}`)
    else await database.remove()
  })
  const together = { set failed(value) { for (const server of servers) server.failed = value } }
  const step = story(t, visitors, together)
  const alive = () => servers.filter(server => server.up).map(server => server.url)
  let alone, alice, bob, cookie, fields, nodeIds

  async function start(index) {
    // The first makes the seal key and the schema, which the others share.
    const shared = servers[0] && { seal_key_file: `${servers[0].folder}/seal.key` }
    const server = await Server.start(`servers-${index + 1}`, { '': { database_url: database.url, ...shared } })
    server.up = true
    servers.push(server)
  }

  /** The person of `visitor` at another server: the same cookies, no second sign-in. */
  async function at(visitor, url) {
    const other = await Visitor.open(browser, { url }, { storageState: await visitor.context.storageState() })
    visitors.push(other)
    return other
  }

  async function leave(visitor) {
    visitor.check()
    await visitor.close()
    visitors.splice(visitors.indexOf(visitor), 1)
  }

  /** Waits a while for a server to be in the middle of making a guest: then its death means something. */
  const busy = server => until('a guest half made', () => database.rows(`select j.id from jobs j
    join job_steps begun on begun.job_id = j.id and begun.name = 'spawn' and begun.state = 'done'
    join job_steps next on next.job_id = j.id and next.name = 'routes' and next.state = 'pending'
    where j.owner = '${server.instance()}' and j.kind = 'guest_create' and j.state = 'running'`).then(found => found.length > 0), { limit: KILL_EVERY, pause: 5 }).catch(() => {})

  /** Kills a server, and measures until the jobs that it held have another. */
  async function kill(server) {
    server.up = false
    // An open page would say on the console that its server is gone, and that is no fault of it.
    for (const visitor of visitors.filter(one => !one.tolerated)) await visitor.page.goto('about:blank')
    const owner = server.instance()
    await server.kill()
    const died = performance.now()
    const held = await database.rows(`select id, generation from jobs where owner = '${owner}' and state in ('running', 'undoing')`)
    const adoption = held.length === 0 ? Promise.resolve() : until('the jobs of a dead server to be taken over', async () => {
      const left = await database.rows(`select id, generation from jobs where owner = '${owner}' and state in ('running', 'undoing')`)
      const now = performance.now() - died
      for (const [id] of held) {
        if (left.some(([other]) => other === id) || measured.adopted.some(one => one.id === id && one.died === died)) continue
        measured.adopted.push({ id, died, ms: now })
      }
      return left.length === 0
    }, { pause: 100 })
    return { held: held.length, adoption }
  }

  async function revive(server) {
    await server.run()
    server.up = true
  }

  /** Initializes a node; returns the job once a server has it, and that server. */
  async function beginInitialize(visitor, node) {
    await pages.initialize(visitor, node)
    const id = node.split('/').at(-1)
    return until('a server to have the job', async () => {
      const [row] = await database.rows(`select id, owner from jobs where node_id = '${id}' and kind = 'node_initialize' and state = 'running' order by queue_order desc limit 1`)
      const owner = row && servers.find(server => server.instance() === row[1])
      return owner && { job: `/jobs/${row[0]}`, owner }
    })
  }

  await step('a second server on the data folder of a private PostgreSQL is refused', async () => {
    alone = await Server.start('servers-alone')
    await assert.rejects(Server.start('servers-second', { '': { data_folder: alone.data } }), /another corpus-server runs with data_folder/)
    assert.equal((await fetch(`${alone.url}/readyz`)).status, 200, 'the first is not disturbed')
    await alone.stop()
  })

  await step('three servers start on one database', async () => {
    for (const index of [0, 1, 2]) await start(index)
  })

  await step('who signed in at one is signed in at all', async () => {
    alice = await Visitor.open(browser, servers[0])
    visitors.push(alice)
    await alice.enter('alice', lab.lab.password)
    bob = await Visitor.open(browser, servers[1])
    visitors.push(bob)
    await bob.enter('bob', lab.lab.password)
    for (const server of servers) {
      const there = await at(alice, server.url)
      await there.page.goto('/nodes')
      await there.page.getByRole('heading', { level: 1, name: 'Compute nodes' }).waitFor()
      await leave(there)
    }
    const wrong = await bob.context.request.post('/keys', { form: { line: 'x' }, headers: { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' } })
    assert.equal(wrong.status(), 403, 'a form from another site is refused by each of them')
    await pages.createZone(alice, zone)
  })

  await step('a cancel pressed at one server ends a job that another runs', async () => {
    const path = await pages.link(alice, 'node1')
    await pages.untilStatus(alice, path, 'Linked')
    const { job, owner } = await beginInitialize(alice, path)
    const there = await at(alice, servers.find(server => server !== owner).url)
    await there.page.goto(job)
    const id = job.split('/').at(-1)
    const ended = () => database.rows(`select coalesce(extract(epoch from min(s.ended_at) - j.cancel_requested_at) * 1000, -1) from jobs j join job_steps s on s.job_id = j.id where j.id = '${id}' and s.ended_at > j.cancel_requested_at group by j.id`)
    await pages.press(there, 'Cancel the job')
    await pages.jobEnds(there, job, 'Cancelled')
    ;[[measured.cancel]] = await ended()
    measured.cancel = Number(measured.cancel)
    // It is printed; what is judged leaves room for all that shares the two processors with it.
    assert.ok(measured.cancel < 6_000, `the running step ended ${measured.cancel} ms after the cancel`)
    await leave(there)
    // Again, to the end: the steps after the next one need it.
    await pages.initialize(alice, path)
  })

  await step('the page of a job goes on through another server when its own dies', async () => {
    const path = await pages.link(alice, 'node2')
    await pages.untilStatus(alice, path, 'Linked')
    const { job, owner } = await beginInitialize(alice, path)
    const [own, other] = servers.filter(server => server !== owner)
    const relay = await Relay.open(own.url)
    t.after(() => relay.down())
    const there = await at(alice, relay.url)
    // The browser says of a stream that broke what there is to say.
    there.tolerated = /net::ERR_(INCOMPLETE_CHUNKED_ENCODING|CONNECTION_|EMPTY_RESPONSE)/
    await there.page.goto(job)
    await there.page.locator('#steps li[data-state=running]').first().waitFor()
    relay.target = { host: '127.0.0.1', port: Number(new URL(other.url).port) }
    const { adoption } = await kill(own)
    await there.page.locator('.head .status', { hasText: 'Done' }).waitFor({ timeout: 60_000 })
    const id = job.split('/').at(-1)
    const wanted = (await database.rows(`select text from job_log where job_id = '${id}' order by seq`)).map(([text]) => text.trim())
    const shown = () => there.page.locator('#log div > span').allInnerTexts()
    await until('the whole log', async () => (await shown()).length >= wanted.length)
    assert.deepEqual((await shown()).map(text => text.trim()), wanted, 'no line is missing, none is there twice')
    const states = await there.page.locator('#steps li').evaluateAll(items => items.map(item => item.dataset.state))
    assert.ok(states.every(state => state === 'done'), states.join())
    await leave(there)
    await adoption
    await revive(own)
  })

  await step('one form sent to two servers is one request', async () => {
    const [[first]] = await database.rows(`select id from nodes where address = '${lab.lab.nodes.node1}'`)
    await pages.untilStatus(alice, `/nodes/${first}`, 'Ready', { limit: 180_000, pause: 100 })
    nodeIds = (await database.rows('select id from nodes order by address')).map(([id]) => id)
    await pages.fillRequest(bob, { name: `twice.${zone}`, size: 'xxsmall' })
    fields = await bob.page.locator('main form[action="/guests"]').evaluate(element => Object.fromEntries(new FormData(element)))
    cookie = (await bob.context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ')
    const send = () => Promise.all(servers.map(server => bob.context.request.post(`${server.url}/guests`, { form: fields, headers: { origin: server.url }, maxRedirects: 0 })))
    // What comes while the first is worked on is told so; sent again it is answered like the first.
    const begun = await send()
    assert.ok(begun.every(answer => [303, 409].includes(answer.status())), begun.map(answer => answer.status()).join())
    const answers = await send()
    assert.deepEqual(answers.map(answer => answer.status()), [303, 303, 303])
    const places = new Set(answers.map(answer => answer.headers().location))
    assert.equal(places.size, 1, [...places].join())
    const [place] = places
    await pages.untilStatus(bob, place, 'Running')
    await pages.jobEnds(bob, await pages.destroy(bob, place, `twice.${zone}`))
  })

  let kept
  await step(`servers die one after the other for ${SECONDS} s under load`, async () => {
    // On a slow machine a server may die between two jobs: some die in the middle of one before this ends.
    const stop = performance.now() + SECONDS * 1_000
    const end = stop + 60_000
    let orphans = 0
    const isOver = () => performance.now() > (orphans > 0 ? stop : end)
    const members = Array.from({ length: WORKERS }, () => new Member(cookie, alive))
    const crowd = Promise.all(members.map((member, index) => work(member, index, { fields, nodes: nodeIds, zone, end: isOver })))
    // Not to be left alone if the deaths below fail first.
    crowd.catch(() => {})
    const adoptions = []
    let deaths = 0
    for (let turn = 0; !isOver(); turn += 1) {
      const next = sleep(KILL_EVERY)
      const server = servers[turn % servers.length]
      await busy(server)
      const { held, adoption } = await kill(server)
      adoption.catch(() => {})
      adoptions.push(adoption)
      orphans += held
      deaths += 1
      await sleep(1_000)
      await revive(server)
      await next
    }
    const done = await crowd
    await Promise.all(adoptions)
    kept = done.map(one => one.kept)
    const sum = what => done.reduce((all, one) => all + one[what], 0)
    const each = measured.adopted.map(one => one.ms)
    assert.ok(each.length > 0, 'no job was with a server that died: nothing was proven')
    assert.ok(Math.max(...each) < 10_000, `a job was without a server for ${Math.max(...each)} ms`)
    assert.deepEqual(members.flatMap(member => member.faults), [])
    assert.deepEqual(done.flatMap(one => one.failed), [], 'no request failed')
    measured.deaths = deaths
    measured.made = sum('made')
    measured.destroyed = sum('destroyed')
    measured.lost = members.reduce((all, member) => all + member.repeated, 0)
    measured.answers = members.reduce((all, member) => all + member.answers, 0)
  })

  await step('all jobs ended, and well', async () => {
    // The answer to the last request may be there before what it asked for is.
    const open = "select id from jobs where state in ('waiting', 'running', 'undoing')"
    await until('no open job', async () => (await database.rows(open)).length === 0)
    const states = await database.rows("select state, count(*) from jobs where kind <> 'node_initialize' group by state")
    assert.deepEqual(states.map(([state]) => state), ['done'], JSON.stringify(states))
    measured.jobs = states[0][1]
  })

  await step('rows and nodes agree', async () => {
    await nodesAgree(database, { kept, nodes: NODES, zone })
  })

  await step('no job ran twice, by the nodes\' own records', async () => {
    const { requests, fenced, adopted } = await ranOnce(database, NODES)
    assert.ok(adopted > 0, 'no job had two runs on a node: nothing was proven')
    Object.assign(measured, { requests, fenced, adoptedOnNodes: adopted })
  })

  await step('a rolling restart under load loses no request', async () => {
    const balancer = await Balancer.open(servers.map(server => server.url))
    t.after(() => balancer.close())
    let over = false
    const members = Array.from({ length: WORKERS - 2 }, () => new Member(cookie, () => [balancer.url]))
    const crowd = Promise.all(members.map((member, index) => work(member, index + 50, { fields, nodes: nodeIds, zone, end: () => over })))
    crowd.catch(() => {})
    const person = await at(bob, balancer.url)
    const browsing = (async () => {
      let made = 0
      for (; !over; made += 1) {
        const name = `b${made}.${zone}`
        const place = await pages.requestGuest(person, { name, size: 'xxsmall' })
        await pages.untilStatus(person, place, 'Running', { limit: 120_000 })
        await pages.jobEnds(person, await pages.destroy(person, place, name))
      }
      return made
    })()
    browsing.catch(() => {})
    measured.exits = []
    measured.handedOver = []
    for (const server of servers) {
      await sleep(1_000)
      const owner = server.instance()
      server.up = false
      const begin = performance.now()
      const held = await database.rows(`select id from jobs where owner = '${owner}' and state in ('running', 'undoing')`)
      const [ms] = await timed(async () => {
        server.process.kill('SIGTERM')
        await until('not ready', async () => (await fetch(`${server.url}/readyz`)).status === 503, { pause: 20, limit: 2_000 })
        await until('its jobs to be handed over', async () => {
          const [[left]] = await database.rows(`select count(*) from jobs where owner = '${owner}' and state in ('running', 'undoing')`)
          return left === '0'
        }, { pause: 50 })
        if (held.length) measured.handedOver.push(performance.now() - begin)
        await server.ended
      })
      assert.equal(server.process.exitCode, 0)
      measured.exits.push(ms)
      await revive(server)
      await until('the proxy to see it', () => balancer.ready().length === servers.length)
    }
    over = true
    measured.browsed = await browsing
    const done = await crowd
    await leave(person)
    assert.deepEqual(balancer.faults, [], 'what the proxy saw')
    assert.deepEqual(members.flatMap(member => member.faults), [])
    assert.equal(members.reduce((all, member) => all + member.repeated, 0), 0, 'no request had to be sent again')
    measured.rolled = balancer.served
    kept.push(...done.map(one => one.kept))
    assert.deepEqual(done.flatMap(one => one.failed), [])
    await nodesAgree(database, { kept, nodes: NODES, zone })
  })

  await step('a second SIGTERM ends a server at once', async () => {
    const [server] = servers
    server.up = false
    server.process.kill('SIGTERM')
    await until('not ready', async () => (await fetch(`${server.url}/readyz`)).status === 503, { pause: 20, limit: 2_000 })
    const [ms] = await timed(async () => {
      server.process.kill('SIGTERM')
      await server.ended
    })
    assert.equal(server.process.exitCode, 1)
    measured.atOnce = ms
    await revive(server)
  })

  await step('everything is taken away again', async () => {
    const member = new Member(cookie, alive)
    await Promise.all(kept.map(({ name, place }) => member.destroy(place, name)))
    const jobs = []
    for (const [node, address] of await database.rows('select id, address from nodes')) {
      jobs.push(await pages.unlink(alice, `/nodes/${node}`, address))
    }
    await Promise.all(jobs.map(job => pages.jobEnds(alice, job)))
    await pages.removeZone(alice, zone)
    await Promise.all(NODES.map(node => lab.untilClean(node)))
  })

  await step('no server logged an error', () => {
    assert.deepEqual(servers.flatMap(server => server.errors()), [])
  })

  await step('the measures', () => {
    const each = measured.adopted.map(one => one.ms)
    const rows = [
      ['servers killed', `${measured.deaths} in ${SECONDS} s`],
      ['guests requested, destroyed meanwhile', `${measured.made}, ${measured.destroyed}`],
      ['jobs, all done', measured.jobs],
      ['requests sent again because their server died', `${measured.lost} of ${measured.answers}`],
      ['death to adoption of its jobs, median, longest', `${seconds(median(each))}, ${seconds(Math.max(...each))} (${each.length} jobs)`],
      ['requests in the records of the nodes, refused as overtaken', `${measured.requests}, ${measured.fenced}`],
      ['jobs with runs of two servers there, with a request twice', `${measured.adoptedOnNodes}, 0`],
      ['cancel at one server to the end of the step on another', seconds(measured.cancel)],
      ['rolling restart: answers through the proxy, lost', `${measured.rolled}, 0`],
      ['SIGTERM to all jobs handed over, longest', measured.handedOver.length ? seconds(Math.max(...measured.handedOver)) : 'no job was there'],
      ['SIGTERM to the end of the process, longest', seconds(Math.max(...measured.exits))],
      ['second SIGTERM to the end', seconds(measured.atOnce)],
    ]
    note('Several servers', rows)
  })
})
