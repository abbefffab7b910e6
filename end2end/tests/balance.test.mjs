// A name that two guests share: while a push deploys to both, a guest is stopped and started, and the name is switched
// from one environment to another, visitors ask for it 200 times a second, and each of them is served.
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { Visitor, launch } from '../browser.mjs'
import { Repository } from '../git.mjs'
import * as lab from '../lab.mjs'
import { visits } from '../load.mjs'
import { note, seconds } from '../measures.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const NODE = 'node1'
const address = lab.lab.nodes[NODE]
const zone = `balance.${lab.lab.zone}`
const shared = `shop.${zone}`
const blue = ['one', 'two'].map(word => `${word}.${zone}`)
const green = `green.${zone}`
const project = '/projects/atlas'
const page = text => `<!doctype html><html lang="en"><title>Site</title><h1>${text}</h1></html>\n`
/** The service is gone for a while in each deployment: a visitor who came then would see it. */
const STOP = '#!/bin/sh\nsystemctl stop "$CORPUS_PROJECT-web.service" 2>/dev/null || true\nsleep 1\n'

test('a name of several guests loses no request', async t => {
  await lab.cleanLab()
  const server = await Server.start('balance')
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await load?.stop()
    await browser.close()
    await server.stop()
  })
  const step = story(t, visitors, server)
  const measured = []
  const guests = {}
  let bob, key, load

  const environment = which => `${project}/${which}`
  const make = async (name, which) => {
    guests[name] = await pages.requestGuest(bob, { name, project: 'atlas', environment: which, size: 'xxsmall' })
    await pages.untilStatus(bob, guests[name], 'Running')
  }
  const join = async name => {
    await bob.page.goto(project)
    const option = bob.page.locator('select[name=guest] option', { hasText: name })
    await bob.page.locator('select[name=guest]').selectOption({ label: await option.innerText() })
    await pages.sends(bob, bob.page.getByRole('button', { name: /^(Add|Set up) / }))
  }
  const urlOf = async which => {
    const shows = async () => /ssh:\/\/git@[^\s<"]+\/(staging|prod)/.exec((await bob.read(environment(which))).html)?.[0]
    return until(`the address of ${which}`, shows, { limit: 120_000 })
  }
  const repositoryOf = (folder, text) => Repository.make(path.join(server.folder, folder), key.path, {
    example: 'static-site',
    fill: inside => {
      writeFileSync(path.join(inside, 'site/index.html'), page(text))
      mkdirSync(path.join(inside, '.corpus'), { recursive: true })
      writeFileSync(path.join(inside, '.corpus/05_stop'), STOP, { mode: 0o755 })
    },
  })
  const push = async (repository, url) => {
    const pushed = await repository.push(url)
    assert.equal(pushed.code, 0, pushed.text)
    return pushed
  }
  const live = async (name = shared) => (await lab.httpGet(address, name)).body
  const inBalance = async which => [...(await bob.read(environment(which))).html.matchAll(/data-member="([^"]+)" data-in=""/g)].map(match => match[1])
  const bothServe = which => until('both guests to be in the balance', async () => (await inBalance(which)).length === 2, { limit: 60_000 })
  const switchHere = async () => {
    await bob.page.goto(environment('prod'))
    await bob.page.getByText('Switch a name here', { exact: true }).click()
    await pages.confirmIn(bob, bob.page.locator('#balance details.more li', { hasText: shared }))
  }
  /** Nobody of those who came meanwhile was turned away. */
  const served = (what, began) => {
    const { asked, failed, again, slowest } = load.mark()
    const told = `${asked} requests, ${failed.length} failed, ${again} asked again, slowest ${Math.round(slowest)} ms, in ${seconds(performance.now() - began)}`
    measured.push([what, told])
    console.log(`# ${what}: ${told}`)
    assert.deepEqual(failed.slice(0, 5), [], `${failed.length} of ${asked} failed while ${what}`)
    assert.ok(asked > 50, `only ${asked} were asked while ${what}`)
  }

  let repository, url
  await step('two guests of staging, deployed, and a name that both share', async () => {
    const alice = await Visitor.open(browser, server)
    visitors.push(alice)
    await alice.enter('alice', lab.lab.password)
    await pages.createZone(alice, zone)
    await pages.readyNode(alice, NODE)
    bob = await Visitor.open(browser, server)
    visitors.push(bob)
    await bob.enter('bob', lab.lab.password)
    key = await lab.makeKey(path.join(server.folder, 'bob'))
    await pages.addKey(bob, key.line)
    for (const name of blue) await make(name, 'staging')
    await join(blue[0])
    url = await urlOf('staging')
    await pages.untilStatus(bob, environment('staging'), 'Nothing live yet', { limit: 120_000 })
    repository = await repositoryOf('blue', 'Blue 1')
    await push(repository, url)
    await join(blue[1])
    const joined = new RegExp(`data-guest="${blue[1]}"((?!</li>)[^])*Live: #`)
    await until('what is live to come to the second guest', async () => joined.test((await bob.read(environment('staging'))).html), { limit: 120_000 })
    await bob.page.goto(environment('staging'))
    await bob.page.getByLabel('DNS name', { exact: true }).fill(shared)
    await pages.press(bob, 'Attach name')
    await until('the name to be attached', async () => /Blue 1/.test(await live().catch(() => '')), { limit: 60_000 })
    await bothServe('staging')
    await bob.page.goto(environment('staging'))
    await bob.screenshot('balance-two-guests')
  })

  await step('a push deploys to both while visitors come', async () => {
    load = visits(address, shared)
    await new Promise(then => setTimeout(then, 1000))
    served('nothing happens', performance.now() - 1000)
    writeFileSync(path.join(repository.folder, 'site/index.html'), page('Blue 2'))
    await repository.commit('The second')
    const began = performance.now()
    await push(repository, url)
    await bothServe('staging')
    served('a push deploys to both guests', began)
    assert.match(await live(), /Blue 2/)
  })

  await step('a push that fails on the second guest is put back on both', async () => {
    writeFileSync(path.join(repository.folder, '.corpus/20_there'), `#!/bin/sh\n[ "$(hostname)" != ${blue[1]} ] || exit 7\n`, { mode: 0o755 })
    await repository.commit('Works on one of them')
    const began = performance.now()
    const refused = await repository.push(url)
    assert.notEqual(refused.code, 0, refused.text)
    await bothServe('staging')
    served('a push is put back on both guests', began)
    assert.match(await live(), /Blue 2/)
  })

  await step('a guest is stopped, and started', async () => {
    for (const [word, state, at] of [['Stop', 'Stopped', 0], ['Start', 'Running', 0], ['Restart', 'Running', 1]]) {
      const began = performance.now()
      await pages.power(bob, guests[blue[at]], word)
      await pages.untilStatus(bob, guests[blue[at]], state)
      if (state === 'Running') await bothServe('staging')
      served(`${blue[at]}: ${word}`, began)
    }
  })

  await step('the name is switched from staging to prod, and back by one press', async () => {
    await make(green, 'prod')
    await join(green)
    const other = await urlOf('prod')
    await pages.untilStatus(bob, environment('prod'), 'Nothing live yet', { limit: 120_000 })
    let began = performance.now()
    load.mark()
    await switchHere()
    await until('the switch to be refused', async () => /Undone/.test((await bob.read('/jobs?state=all&kind=name_switch')).html), { limit: 90_000 })
    served('a switch to what does not serve is refused', began)
    assert.match(await live(), /Blue 2/)
    await push(await repositoryOf('green', 'Green'), other)
    began = performance.now()
    await switchHere()
    await until('green to be live', async () => /Green/.test(await live()))
    served('the name is switched to another environment', began)
    began = performance.now()
    await bob.page.goto(environment('prod'))
    await pages.sends(bob, bob.page.getByRole('button', { name: /^Undo: / }).first())
    await until('blue to be live again', async () => /Blue 2/.test(await live()))
    served('the switch is undone', began)
    const rest = await load.stop()
    assert.deepEqual(rest.failed, [])
    note('A name of two guests under 200 requests a second', measured)
  })
})
