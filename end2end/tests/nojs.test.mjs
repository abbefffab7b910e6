// The same forms with JavaScript off: whatever the wasm adds, nothing needs it.
import assert from 'node:assert/strict'
import path from 'node:path'
import test from 'node:test'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const NODE = 'node2'
const zone = `nojs.${lab.lab.zone}`
const guestName = `www.${zone}`

test('every form without JavaScript', async t => {
  await lab.cleanLab()
  const server = await Server.start('nojs')
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
  })
  const step = story(t, visitors, server)
  let alice, bob, node, guest, key

  await step('sign in, and a wrong password is refused with the login name kept', async () => {
    alice = await Visitor.open(browser, server, { javaScriptEnabled: false })
    visitors.push(alice)
    await alice.signIn('alice', 'wrong')
    await pages.summary(alice).waitFor()
    assert.equal(await alice.page.getByLabel('Login name').inputValue(), 'alice')
    assert.equal(await alice.page.getByLabel('Password', { exact: true }).inputValue(), '')
    await alice.enter('alice', lab.lab.password)
    bob = await Visitor.open(browser, server, { javaScriptEnabled: false })
    visitors.push(bob)
    await bob.enter('bob', lab.lab.password)
  })

  await step('operators make projects, unless the configuration says members do', async () => {
    await bob.page.goto('/projects')
    await bob.page.getByText('Operators make new projects').waitFor()
    assert.match((await bob.read('/projects/new')).html, /Ask for the project/)
  })

  await step('help opens what is written about a page, and a search finds the rest', async () => {
    await bob.page.goto('/keys')
    const [help] = await Promise.all([bob.context.waitForEvent('page'), bob.page.getByRole('link', { name: 'Help with this page' }).click()])
    await help.getByRole('heading', { name: 'Add your SSH key' }).waitFor()
    assert.equal(new URL(help.url()).hash, '#add-your-ssh-key')
    await help.close()
    await bob.page.goto('/docs')
    await bob.page.getByLabel('Search the documentation').fill('Seal key')
    await pages.press(bob, 'Search')
    await bob.page.locator('mark').getByText('seal', { exact: true }).first().waitFor()
    await pages.sends(bob, bob.page.getByRole('link', { name: 'Passwords and keys' }))
    await bob.page.getByRole('heading', { level: 2, name: 'Passwords and keys' }).waitFor()
    assert.equal(pages.here(bob), '/docs/operating')
  })

  await step('create a zone, link a node', async () => {
    await pages.createZone(alice, zone)
    await alice.page.getByText(zone, { exact: true }).first().waitFor()
    node = await pages.link(alice, NODE)
    await pages.untilStatus(alice, node, 'Linked')
  })

  await step('initialize it; the job page shows the state, and a link to look again', async () => {
    await pages.initialize(alice, node)
    await alice.page.getByRole('link', { name: 'Follow the job' }).first().click()
    await alice.page.locator('#steps li').first().waitFor()
    const job = pages.here(alice)
    await alice.page.getByRole('link', { name: 'Look again' }).click()
    assert.equal(pages.here(alice), job)
    await pages.jobEnds(alice, job, 'Done', 180_000)
    await alice.page.reload()
    const states = await alice.page.locator('#steps li').evaluateAll(items => items.map(item => item.dataset.state))
    assert.ok(states.every(state => state === 'done'), states.join())
    await pages.untilStatus(alice, node, 'Ready')
  })

  await step('a refused form is there again after Back, Forward and a reload', async () => {
    const line = bob.page.getByLabel('Public key', { exact: true })
    await pages.addKey(bob, 'no key at all')
    await bob.page.goto('/mail')
    for (const move of ['goBack', 'reload', 'goForward', 'goBack']) {
      await bob.page[move]()
      if (move === 'goForward') continue
      await pages.errorAt(bob, 'line').waitFor()
      assert.equal(await line.inputValue(), 'no key at all', move)
    }
  })

  await step('choose when letters come', async () => {
    await bob.page.goto('/mail')
    const guests = bob.page.getByLabel('Guests that are ready', { exact: true })
    assert.equal(await guests.inputValue(), 'at_once')
    assert.equal(await bob.page.getByLabel('Nodes that are ready').count(), 0, 'operators are told of nodes')
    await guests.selectOption({ label: 'Once a day' })
    await pages.press(bob, 'Save mail choices')
    await bob.page.goto('/mail')
    assert.equal(await guests.inputValue(), 'digest')
    await alice.page.goto('/mail')
    await alice.page.getByRole('heading', { name: 'Mail relay' }).waitFor()
  })

  await step('a form that comes when the session has ended is there again after signing in', async () => {
    const wanted = { name: guestName, environment: 'staging', size: 'medium', names: `a.${zone}` }
    await pages.fillRequest(bob, { ...wanted, password: 'a password that is long' })
    // The browser drops the cookie of a session that is over, and knows who had it.
    await bob.context.clearCookies({ name: /corpus$/ })
    await pages.press(bob, 'Request the guest')
    await bob.page.getByText('Your session ended. Sign in to go on; what you typed is kept.').waitFor()
    await pages.signInHere(bob, 'bob', 'wrong')
    await pages.signInHere(bob, 'bob', lab.lab.password)
    await pages.summary(bob).getByText('ended before this was sent').waitFor()
    for (const [field, value] of Object.entries(wanted)) assert.equal(await bob.page.locator(`[name=${field}]`).inputValue(), value, field)
    assert.equal(await bob.page.locator('[name=password]').inputValue(), '')
    await bob.page.goto('/mail')
    await bob.page.goBack()
    assert.equal(await bob.page.locator('[name=name]').inputValue(), guestName)
    assert.ok(!(await bob.read('/guests')).html.includes(guestName), 'nothing was requested')
  })

  await step('add a key, request a guest, enter it', async () => {
    key = await lab.makeKey(path.join(server.folder, 'bob'))
    await pages.addKey(bob, key.line)
    guest = await pages.requestGuest(bob, { name: guestName, project: 'atlas', environment: 'dev', size: 'xxsmall' })
    const html = await pages.untilStatus(bob, guest, 'Running')
    await lab.pasted(pages.valueIn(html, 'ssh'), key.path, 'true')
  })

  await step('reveal the password, stop and start', async () => {
    assert.match(await pages.reveal(bob, guest), /^[A-Za-z0-9]{24}$/)
    await pages.power(bob, guest, 'Stop')
    await pages.untilStatus(bob, guest, 'Stopped')
    await pages.power(bob, guest, 'Start')
    await pages.untilStatus(bob, guest, 'Running')
  })

  await step('attach a name and detach it', async () => {
    const name = `site.${zone}`
    await pages.attach(bob, guest, name)
    await pages.nameIs(bob, guest, name, 'Attached')
    assert.deepEqual(await lab.resolved(name), [lab.lab.nodes[NODE]])
    await pages.detach(bob, guest, name)
    await pages.nameIs(bob, guest, name, null)
    assert.deepEqual(await lab.resolved(name), [])
  })

  await step('destroy with a wrong name asks again, with the right one it is done', async () => {
    await bob.page.goto(`${guest}/destroy`)
    await bob.page.getByLabel(`Type ${guestName} to confirm`).fill('something else')
    await bob.page.getByRole('button', { name: 'Destroy this guest' }).click()
    await pages.errorAt(bob, 'confirm').waitFor()
    await pages.jobEnds(bob, await pages.destroy(bob, guest, guestName))
  })

  await step('remove the key, unlink the node, remove the zone, sign out', async () => {
    await bob.page.goto('/keys')
    await pages.confirmIn(bob, bob.page.locator('tr, li').filter({ hasText: 'made by the test' }).first())
    await bob.page.locator('table').getByText('made by the test').waitFor({ state: 'detached' })
    await pages.jobEnds(alice, await pages.unlink(alice, node, lab.lab.nodes[NODE]))
    await pages.removeZone(alice, zone)
    await until('the zone to be gone', async () => (await lab.zoneRecords(zone)) === null)
    await lab.untilClean(NODE)
    await alice.page.getByRole('button', { name: 'Sign out' }).click()
    await alice.page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
    await alice.page.goto('/nodes')
    await alice.page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
  })

  await step('the server logged no error', async () => {
    assert.deepEqual(server.errors(), [])
  })
})
