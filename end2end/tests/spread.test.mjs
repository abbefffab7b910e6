// A name whose guests are on two nodes: each node takes its visitors and brings them to the guests of both, by TLS that
// nobody else can begin. While a push deploys, a guest is stopped and a whole node is lost, visitors of the other node
// are all served; so they are while the name is switched to what is on one of the nodes, and back. The name leads to the
// nodes that answer.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { Visitor, launch } from '../browser.mjs'
import { Repository } from '../git.mjs'
import * as lab from '../lab.mjs'
import { visits } from '../load.mjs'
import { note, seconds } from '../measures.mjs'
import * as pages from '../pages.mjs'
import { PATIENCE, until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const { node1, node2 } = lab.lab.nodes
const both = [node1, node2].toSorted()
const zone = `spread.${lab.lab.zone}`
const shared = `shop.${zone}`
const names = ['near', 'far'].map(word => `${word}.${zone}`)
const project = '/projects/atlas'
const environment = `${project}/staging`
const [green, other] = [`green.${zone}`, `${project}/prod`]
const page = text => `<!doctype html><html lang="en"><title>Site</title><h1>${text}</h1></html>\n`

test('guests of one name are on two nodes', async t => {
  await lab.cleanLab()
  const server = await Server.start('spread')
  const browser = await launch()
  const visitors = []
  const loads = []
  let isCut = false
  t.after(async () => {
    for (const load of loads) await load.stop()
    if (isCut) await lab.fault('heal', 'node2')
    await browser.close()
    await server.stop()
  })
  const step = story(t, visitors, server)
  const measured = []
  const guests = {}
  const on = {}
  let alice, bob, key, repository, url

  const join = async name => {
    await bob.page.goto(project)
    const option = bob.page.locator('select[name=guest] option', { hasText: name })
    await bob.page.locator('select[name=guest]').selectOption({ label: await option.innerText() })
    await pages.sends(bob, bob.page.getByRole('button', { name: /^(Add|Set up) / }))
  }
  const live = async address => (await lab.httpGet(address, shared)).body
  const inBalance = async () => [...(await bob.read(environment)).html.matchAll(/data-member="([^"]+)" data-in=""/g)].map(match => match[1])
  const bothServe = () => until('both guests to be in the balance', async () => (await inBalance()).length === 2, { limit: 60_000 })
  const leadsTo = (addresses, limit = PATIENCE) => until(`${shared} to lead to ${addresses.join(' and ')}`,
    async () => (await lab.resolved(shared)).toSorted().join() === addresses.join(), { limit, pause: 300 })
  /** Nobody who came to these nodes meanwhile was turned away. */
  const served = (what, began, which = loads) => {
    for (const [at, load] of which.entries()) {
      const { asked, failed, again, slowest } = load.mark()
      const told = `${asked} requests, ${failed.length} failed, ${again} asked again, slowest ${Math.round(slowest)} ms, in ${seconds(performance.now() - began)}`
      measured.push([`${what} (node ${at + 1})`, told])
      console.log(`# ${what}, node ${at + 1}: ${told}`)
      assert.deepEqual(failed.slice(0, 5), [], `${failed.length} of ${asked} failed at node ${at + 1} while ${what}`)
      assert.ok(asked > 20, `only ${asked} were asked while ${what}`)
    }
  }

  await step('two nodes with a guest of staging each, deployed, and a name that both share', async () => {
    alice = await Visitor.open(browser, server)
    visitors.push(alice)
    await alice.enter('alice', lab.lab.password)
    await pages.createZone(alice, zone)
    bob = await Visitor.open(browser, server)
    visitors.push(bob)
    await bob.enter('bob', lab.lab.password)
    key = await lab.makeKey(path.join(server.folder, 'bob'))
    await pages.addKey(bob, key.line)
    for (const [at, name] of names.entries()) {
      const node = on[name] = (await pages.readyNode(alice, `node${at + 1}`)).split('/').at(-1)
      guests[name] = await pages.requestGuest(bob, { name, project: 'atlas', environment: 'staging', size: 'xxsmall', node })
      await pages.untilStatus(bob, guests[name], 'Running')
    }
    await join(names[0])
    const shows = async () => /ssh:\/\/git@[^\s<"]+\/staging/.exec((await bob.read(environment)).html)?.[0]
    url = await until('the address of staging', shows, { limit: 120_000 })
    await pages.untilStatus(bob, environment, 'Nothing live yet', { limit: 120_000 })
    repository = await Repository.make(path.join(server.folder, 'site'), key.path, {
      example: 'static-site',
      fill: inside => writeFileSync(path.join(inside, 'site/index.html'), page('One')),
    })
    const pushed = await repository.push(url)
    assert.equal(pushed.code, 0, pushed.text)
    const joined = new RegExp(`data-guest="${names[1]}"((?!</li>)[^])*Live: #`)
    await pages.untilStatus(bob, environment, 'Live now')
    await join(names[1])
    await until('what is live to come to the second guest', async () => joined.test((await bob.read(environment)).html), { limit: 120_000 })
    await bob.page.goto(environment)
    await bob.page.getByLabel('DNS name', { exact: true }).fill(shared)
    await pages.press(bob, 'Attach name')
    await leadsTo(both)
    for (const node of [node1, node2]) await until(`${node} to serve it`, async () => /One/.test(await live(node).catch(() => '')), { limit: 60_000 })
    await bothServe()
    for (const node of ['node1', 'node2']) {
      const table = await until(`${node} to reach both guests`, async () => {
        const text = await lab.onNode(node, "echo 'show stat' | socat - UNIX-CONNECT:/run/corpus-proxy/admin.sock | grep '^pool-' | cut -d, -f2,18")
        return names.every(name => text.includes(`${name},UP`)) && text
      }, { pause: 300 })
      assert.match(table, /UP/)
    }
    await bob.page.goto(environment)
    await bob.screenshot('spread-two-nodes')
  })

  await step('nobody but the nodes comes in where they meet', async () => {
    const asks = (from, to) => lab.onNode(from, `curl -sk -o /dev/null -w '%{http_code}' --max-time 3 https://${to}:7443/; echo " $?"`)
    // A node without a certificate of ours gets no answer: the handshake ends.
    assert.match(await asks('node1', node2), /^000 (35|56)/)
    // Whoever is no node does not even get so far.
    await assert.rejects(lab.httpGet(node2, shared, { port: 7443 }), /no answer/)
  })

  await step('a push deploys to both while visitors come to both nodes', async () => {
    for (const node of [node1, node2]) loads.push(visits(node, shared, { rate: 60 }))
    await new Promise(then => setTimeout(then, 1500))
    served('nothing happens', performance.now() - 1500)
    writeFileSync(path.join(repository.folder, 'site/index.html'), page('Two'))
    await repository.commit('The second')
    const began = performance.now()
    const pushed = await repository.push(url)
    assert.equal(pushed.code, 0, pushed.text)
    await bothServe()
    served('a push deploys to both guests', began)
    for (const node of [node1, node2]) assert.match(await live(node), /Two/)
  })

  await step('each guest is stopped and started: its node goes on by the other', async () => {
    for (const name of names) {
      let began = performance.now()
      await pages.power(bob, guests[name], 'Stop')
      await pages.untilStatus(bob, guests[name], 'Stopped')
      await new Promise(then => setTimeout(then, 1000))
      served(`${name} is stopped`, began)
      began = performance.now()
      await pages.power(bob, guests[name], 'Start')
      await pages.untilStatus(bob, guests[name], 'Running')
      await bothServe()
      served(`${name} is started`, began)
    }
  })

  await step('the name is switched to an environment on the second node only, and back by one press', async () => {
    const node = on[names[1]]
    guests[green] = await pages.requestGuest(bob, { name: green, project: 'atlas', environment: 'prod', size: 'xxsmall', node })
    await pages.untilStatus(bob, guests[green], 'Running')
    await join(green)
    const to = await until('the address of prod', async () => /ssh:\/\/git@[^\s<"]+\/prod/.exec((await bob.read(other)).html)?.[0], { limit: 120_000 })
    await pages.untilStatus(bob, other, 'Nothing live yet', { limit: 120_000 })
    const site = await Repository.make(path.join(server.folder, 'green'), key.path, {
      example: 'static-site',
      fill: inside => writeFileSync(path.join(inside, 'site/index.html'), page('Green')),
    })
    const pushed = await site.push(to)
    assert.equal(pushed.code, 0, pushed.text)
    const serves = text => async () => (await Promise.all([node1, node2].map(live))).every(body => text.test(body))
    for (const load of loads) load.mark()
    let began = performance.now()
    await bob.page.goto(other)
    await bob.page.getByText('Switch a name here', { exact: true }).click()
    await pages.confirmIn(bob, bob.page.locator('#balance details.more li', { hasText: shared }))
    await until('both nodes to bring visitors to prod', serves(/Green/), { limit: 60_000 })
    await leadsTo([node2])
    served('the name is switched to prod on the second node', began)
    began = performance.now()
    await bob.page.goto(other)
    await pages.sends(bob, bob.page.getByRole('button', { name: /^Undo: / }).first())
    await until('both nodes to bring visitors to staging', serves(/Two/))
    await leadsTo(both)
    served('the switch is undone', began)
  })

  await step('a node is lost: the other one serves, and the name leads to it alone', async () => {
    const rest = await loads.pop().stop()
    assert.deepEqual(rest.failed, [])
    loads[0].mark()
    const began = performance.now()
    await lab.fault('cut', 'node2')
    isCut = true
    await leadsTo([node1], 120_000)
    served('the other node is lost', began)
    assert.match(await live(node1), /Two/)
    await lab.fault('heal', 'node2')
    isCut = false
    await leadsTo(both, 120_000)
    await until('the node to serve again', async () => /Two/.test(await live(node2).catch(() => '')), { limit: 60_000 })
    served('it is back', began)
  })

  await step('the second guest leaves: the name leads to one node, and visitors of both are served until then', async () => {
    loads.push(visits(node2, shared, { rate: 60 }))
    const began = performance.now()
    await bob.page.goto(environment)
    await pages.sends(bob, bob.page.getByRole('link', { name: `Remove guest ${names[1]} from staging` }))
    await bob.page.getByLabel(`Type ${names[1]} to confirm`).fill(names[1])
    await pages.press(bob, 'Remove this guest')
    await leadsTo([node1], 60_000)
    served('a guest leaves', began)
    const last = await loads.pop().stop()
    assert.deepEqual(last.failed, [])
    await until('the guest to be free', async () => !(await bob.read(environment)).html.includes(`data-guest="${names[1]}"`), { limit: 150_000 })
    note('A name of guests on two nodes under 60 requests a second at each', measured)
    for (const load of loads.splice(0)) assert.deepEqual((await load.stop()).failed, [])
  })
})
