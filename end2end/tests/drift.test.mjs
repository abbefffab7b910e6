// What differs on a node is shown and repaired on demand; and a node that does not answer delays
// no page and no other node's job, and a job that waits for it says so and can be cancelled.
import assert from 'node:assert/strict'
import path from 'node:path'
import test from 'node:test'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import { violations } from '../look.mjs'
import * as pages from '../pages.mjs'
import { timed, until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const guestName = `www.drift.${lab.lab.zone}`
/**
 * How long a page may take while a node is cut, in ms: nineteen in twenty at once, and none as
 * long as a node is given to answer.
 */
const AT_ONCE = 500
const WAITED = 2_500

const plain = html => html.replace(/<[^>]*>/g, '').replace(/\s+/g, ' ')

test('drift, and a node that does not answer', async t => {
  await lab.cleanLab()
  const server = await Server.start('drift')
  const browser = await launch()
  const visitors = []
  let cut = false
  t.after(async () => {
    if (cut) await lab.fault('heal', 'node2')
    await browser.close()
    await server.stop()
  })
  const step = story(t, visitors, server)
  let alice, bob, first, second, guest

  await step('two nodes and a guest', async () => {
    alice = await Visitor.open(browser, server)
    bob = await Visitor.open(browser, server)
    visitors.push(alice, bob)
    await alice.enter('alice', lab.lab.password)
    await bob.enter('bob', lab.lab.password)
    const other = await Visitor.open(browser, server)
    await other.enter('alice', lab.lab.password)
    ;[first, second] = await Promise.all([pages.readyNode(alice, 'node1'), pages.readyNode(other, 'node2')])
    await other.close()
    const node = first.split('/').at(-1)
    guest = await pages.requestGuest(bob, { name: guestName, project: 'atlas', environment: 'prod', size: 'xxsmall', node })
    await pages.untilStatus(bob, guest, 'Running')
    await alice.page.goto(first)
    await alice.page.locator('#drift .status', { hasText: 'Nothing differs' }).waitFor()
    assert.match(plain((await alice.read(first)).html), /As it should be ?checked (now|\d+ s ago)/)
  })

  await step('what is changed by hand on the node is shown, with since when', async () => {
    await lab.onNode('node1', `nft flush chain inet corpus from_guests; lxc-stop -k -n ${guestName};
      echo 'clear map /etc/corpus/ports.map' | socat - UNIX-CONNECT:/run/corpus-proxy/admin.sock`)
    // A job on the node has it checked at its end, long before its minute is over.
    const key = await lab.makeKey(path.join(server.folder, 'bob'))
    await pages.addKey(bob, key.line)
    for (const word of ['Firewall', 'Route', 'Power']) {
      await alice.page.locator('#drift .status', { hasText: word }).waitFor()
    }
    assert.match(plain((await alice.read('/nodes')).html), /Drift 3/)
    assert.match(plain((await alice.read('/')).html), /is not as it should be: 3 differences/)
    assert.match(plain((await bob.read(guest)).html), /It should run and is stopped/)
    assert.doesNotMatch((await bob.read(first)).html, /id="drift"/, 'who may not repair it is not shown what differs')
    assert.deepEqual(await violations(alice.page), [])
    await alice.screenshot('drift-node')
  })

  await step('a repair brings it back', async () => {
    await alice.page.getByRole('button', { name: 'Repair', exact: true }).click()
    await alice.page.locator('#drift .status', { hasText: 'Nothing differs' }).waitFor()
    await alice.page.getByRole('link', { name: /^Repair node/ }).first().click()
    await alice.page.locator('.head .status', { hasText: 'Done' }).waitFor()
    assert.match(await alice.page.locator('#log').innerText(), /it should run and is stopped/)
    assert.match(await lab.onNode('node1', `lxc-info -n ${guestName} -s`), /RUNNING/)
    await pages.untilStatus(bob, guest, 'Running')
    assert.doesNotMatch((await alice.read('/nodes')).html, /Drift \d/)
  })

  await step('a node that is cut delays no page and no job on the other, and is told of', async () => {
    await lab.fault('cut', 'node2')
    cut = true
    const took = []
    const look = async place => {
      const [ms, { status }] = await timed(() => alice.read(place))
      assert.equal(status, 200)
      took.push(ms)
    }
    let looking = true
    const looks = (async () => {
      while (looking) for (const place of ['/nodes', second, first, '/']) await look(place)
    })()
    await pages.power(bob, guest, 'Restart')
    await pages.untilStatus(bob, guest, 'Running')
    await alice.page.goto(second)
    await alice.page.getByRole('button', { name: 'Initialize again' }).click()
    await until('the node is told to be unreachable', async () => /Unreachable/.test((await alice.read('/nodes')).html), { limit: 60_000, pause: 200 })
    looking = false
    await looks
    took.sort((one, other) => one - other)
    // Who waits for a node waits for seconds; a processor that is busy with other tests takes a part of one now and then.
    const [usual, worst] = [took[Math.floor(took.length / 2)], took.at(-1)]
    assert.ok(usual < AT_ONCE && worst < WAITED, `of ${took.length} pages half took ${usual.toFixed(0)} ms, the slowest ${worst.toFixed(0)} ms`)
    t.diagnostic(`pages while a node is cut: ${took.length}, half within ${usual.toFixed(0)} ms, the slowest ${worst.toFixed(0)} ms`)
  })

  await step('the job that waits says for what, until when, and is cancelled', async () => {
    await alice.page.getByRole('link', { name: 'Follow the job' }).first().click()
    const notice = alice.page.locator('.banner', { hasText: 'Waits' })
    await until('what it waits for', async () => {
      const said = await notice.innerText({ timeout: 1000 })
      return /node \S+ to answer \(attempt \d+ of \d+\), next try at \d\d:\d\d:\d\d/.test(said.replace(/\s+/g, ' ')) && /is unreachable for/.test(said)
    }, { pause: 20 })
    assert.match(await notice.innerText(), /cancel the job: what it did so far is undone/)
    // While it tries it waits for nothing, and while the node is away each attempt waits by itself.
    await until('the list to say so', async () => /node \S+ to answer/.test(plain((await alice.read('/jobs?state=open')).html)), { pause: 50 })
    await alice.page.getByRole('button', { name: 'Cancel the job' }).click()
    await alice.page.locator('.head .status', { hasText: 'Cancelled' }).waitFor()
  })

  await step('it comes back, and both nodes are unlinked', async () => {
    await lab.fault('heal', 'node2')
    cut = false
    await pages.untilStatus(alice, second, 'Ready')
    const job = await pages.destroy(bob, guest, guestName)
    await pages.jobEnds(bob, job)
    const jobs = []
    for (const [node, at] of [['node1', first], ['node2', second]]) jobs.push(await pages.unlink(alice, at, lab.lab.nodes[node]))
    for (const one of jobs) await pages.jobEnds(alice, one)
    assert.deepEqual(await lab.traces('node1'), {})
    // The agent that was cut off ends when sshd gives up the connection that it was on.
    const { processes, ...left } = await lab.traces('node2')
    assert.deepEqual(left, {})
    assert.ok((processes ?? []).every(line => line.includes('corpus-agent')), processes)
    assert.deepEqual(server.errors(), [])
  })
})
