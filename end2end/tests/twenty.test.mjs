// Twenty guests are asked for at once, on two nodes: all are ready after, each lets in, and all go at once again.
import assert from 'node:assert/strict'
import test from 'node:test'
import { Session } from '../hostile/session.mjs'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import { note, seconds } from '../measures.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const GUESTS = 20
const names = Array.from({ length: GUESTS }, (_, number) => `many${number}.${lab.lab.zone}`)

test('twenty guests are asked for at once', async t => {
  await lab.cleanLab()
  const server = await Server.start('twenty')
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
  })
  const step = story(t, visitors, server)
  const bob = new Session(server.url)
  const measured = {}
  let guests

  const json = async (path, { method = 'GET', body } = {}) => {
    const headers = body && { 'content-type': 'application/json' }
    const answer = await bob.ask(`/api/v1${path}`, { method, file: body && JSON.stringify(body), headers })
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.html}`)
    return JSON.parse(answer.html)
  }
  const shown = async () => (await json('/guests?limit=200')).items

  await step('two nodes, and the image on both', async () => {
    const alice = await (await Visitor.open(browser, server)).enter('alice', lab.lab.password)
    visitors.push(alice)
    for (const node of ['node1', 'node2']) await pages.readyNode(alice, node)
    await bob.enter('bob', lab.lab.password)
  })

  await step('all are ready', async () => {
    const began = performance.now()
    guests = await Promise.all(names.map(name => json('/guests', { method: 'POST', body: { project: 'atlas', environment: 'dev', name, size: 'xxsmall' } })))
    measured.asked = performance.now() - began
    const ready = new Map()
    await until('all of them', async () => {
      for (const { name, state } of await shown()) {
        assert.notEqual(state, 'failed', name)
        if (state === 'running' && !ready.has(name)) ready.set(name, performance.now() - began)
      }
      return ready.size === GUESTS
    }, { limit: 180_000, pause: 30 })
    const times = [...ready.values()].sort((a, b) => a - b)
    Object.assign(measured, { first: times[0], half: times[GUESTS / 2], last: times.at(-1) })
    const on = new Set((await shown()).map(guest => guest.node_address))
    assert.equal(on.size, 2, 'they are on both nodes')
  })

  await step('each lets in', async () => {
    for (const [node, address] of Object.entries(lab.lab.nodes)) {
      const here = (await shown()).filter(guest => guest.node_address === address)
      const said = await lab.onNode(node, here.map(({ name }) => `lxc-attach -n ${name} -- hostname`).join('\n'))
      assert.deepEqual(said.trim().split('\n').sort(), here.map(({ name }) => name).sort())
    }
  })

  await step('all go', async () => {
    const began = performance.now()
    await Promise.all(guests.map(({ guest }) => json(`/guests/${guest}`, { method: 'DELETE' })))
    await until('none of them', async () => (await shown()).length === 0, { limit: 180_000, pause: 30 })
    measured.gone = performance.now() - began
  })

  note(`${GUESTS} guests are asked for at once, on two nodes`, [
    ['all requests are answered', seconds(measured.asked)],
    ['the first is ready (its job has logged in over SSH)', seconds(measured.first)],
    ['half of them', seconds(measured.half)],
    ['all', seconds(measured.last)],
    ['all are destroyed', seconds(measured.gone)],
  ])
})
