// A member without any right comes from the first sign-in to a page that answers, with two approvals by an operator: one
// for the project, one for a guest beyond the quota. Another one is refused both, and reads why.
import assert from 'node:assert/strict'
import path from 'node:path'
import test from 'node:test'
import { Visitor, launch } from '../browser.mjs'
import { Database } from '../database.mjs'
import { Repository } from '../git.mjs'
import * as lab from '../lab.mjs'
import * as look from '../look.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const zone = `asked.${lab.lab.zone}`
const guestName = `web.${zone}`
const site = `www.${zone}`
const WHY = 'The new shop <b>needs</b> it'

test('what members may not do alone is asked for and approved', async t => {
  await lab.cleanLab()
  const database = await Database.make('approvals')
  const server = await Server.start('approvals', { '': { database_url: database.url } })
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
    await database.remove()
  })
  const step = story(t, visitors, server)
  let alice, dave, guest, key, request

  const enters = async login => {
    const visitor = await Visitor.open(browser, server)
    visitors.push(visitor)
    return visitor.enter(login, lab.lab.password)
  }
  const field = (visitor, label) => visitor.page.getByLabel(label, { exact: true })
  const state = async (visitor, at) => pages.statusIn((await visitor.read(at)).html)
  /** Opens the newest open request as an operator, by the number beside the navigation. */
  const opens = async title => {
    await alice.page.goto('/')
    const entry = alice.page.locator('nav.sidebar a[href="/requests"]')
    assert.match(await entry.innerText(), /Requests\s*1/)
    await pages.sends(alice, entry)
    await pages.sends(alice, alice.page.getByRole('link', { name: title }))
  }

  await step('an operator has a node, a zone, and no guest for anybody by default', async () => {
    alice = await enters('alice')
    await pages.readyNode(alice, 'node1')
    await alice.page.goto('/dns')
    await alice.page.getByLabel('Zone name').fill(zone)
    await alice.page.getByLabel('All projects', { exact: true }).check()
    await pages.press(alice, 'Create the zone')
    await alice.page.goto('/quotas')
    await field(alice, 'Guests').fill('0')
    await pages.press(alice, 'Set what holds by default')
  })

  await step('a member who has nothing is led to asking for a project', async () => {
    dave = await enters('twin1')
    key = await lab.makeKey(path.join(server.folder, 'twin1'))
    await dave.page.goto('/keys')
    await dave.page.getByLabel('Public key').fill(key.line)
    await pages.press(dave, 'Add the key')
    await dave.page.goto('/')
    await pages.sends(dave, dave.page.locator('.first-steps').getByRole('link', { name: 'Ask for a project' }))
    await look.judged(dave, 'approvals-ask-project')
    await field(dave, 'Name').fill('No Name')
    await field(dave, 'Why you need it').fill(WHY)
    await pages.press(dave, 'Ask for the project')
    await pages.errorAt(dave, 'name').waitFor()
    assert.equal(await field(dave, 'Why you need it').inputValue(), WHY, 'what was typed stays')
    await field(dave, 'Name').fill('newshop')
    await pages.press(dave, 'Ask for the project')
    request = pages.here(dave)
    assert.equal(await state(dave, request), 'Open')
    assert.ok((await dave.read(request)).html.includes('&lt;b&gt;needs&lt;/b&gt;'), 'what is typed is text')
  })

  await step('the operator is told, sees what it is, and approves', async () => {
    await opens('Project newshop')
    await look.judged(alice, 'approvals-decide')
    await pages.press(alice, 'Approve request')
    assert.equal(await state(alice, request), 'Approved')
    await dave.page.goto('/notices')
    await dave.page.getByText('Your request was approved: Project newshop').waitFor()
  })

  await step('a guest is refused for the quota, asked for with the same form, and approved', async () => {
    await dave.page.goto('/guests/new?project=newshop')
    await field(dave, 'Name').fill(guestName)
    await dave.page.getByLabel('DNS names').fill(site)
    await pages.press(dave, 'Request the guest')
    await pages.summary(dave).getByText('nothing is left').waitFor()
    await pages.press(dave, 'Ask the operators for it')
    await pages.errorAt(dave, 'comment').waitFor()
    assert.equal(await field(dave, 'Name').inputValue(), guestName, 'what was typed stays')
    await field(dave, 'Why you need it').fill(WHY)
    await look.judged(dave, 'approvals-ask-guest')
    await pages.press(dave, 'Ask for the guest')
    request = pages.here(dave)
    await opens(new RegExp(guestName))
    await alice.page.locator('#outlook').getByText('nothing left').first().waitFor()
    await look.judged(alice, 'approvals-decide-guest')
    await field(alice, 'What to tell them (optional)').fill('One only')
    await pages.press(alice, 'Approve request')
    await dave.page.goto(request)
    await dave.page.getByText('One only').waitFor()
    await pages.sends(dave, dave.page.getByRole('link', { name: 'Open what was made' }))
    guest = pages.here(dave)
    await pages.untilStatus(dave, guest, 'Running')
  })

  await step('a push, and the page answers', async () => {
    await dave.page.goto(guest)
    await pages.sends(dave, dave.page.locator('#guest').getByRole('link', { name: 'Set up' }))
    await pages.setUp(dave)
    const html = await pages.untilStatus(dave, '/projects/newshop/dev', 'Nothing live yet', { limit: 120_000 })
    const url = /ssh:\/\/git@[^\s<"]+\/dev/.exec(html)[0]
    const repository = await Repository.make(path.join(server.folder, 'site'), key.path, { example: 'static-site' })
    const pushed = await repository.push(url)
    assert.equal(pushed.code, 0, pushed.text)
    await until('the page', async () => (await lab.httpGet(lab.lab.nodes.node1, site)).status === 200, { limit: 60_000 })
  })

  await step('another one is refused both, and reads why', async () => {
    const erin = await enters('twin2')
    await erin.page.goto('/projects/new')
    await field(erin, 'Name').fill('othershop')
    await field(erin, 'Why you need it').fill('Me too')
    await pages.press(erin, 'Ask for the project')
    request = pages.here(erin)
    await opens('Project othershop')
    // The browser does not send it without a reason.
    await alice.page.getByRole('button', { name: 'Refuse request', exact: true }).click()
    assert.equal(await state(alice, request), 'Open', 'a refusal says why')
    await field(alice, 'Why').fill('Use newshop')
    await pages.press(alice, 'Refuse request')
    await erin.page.goto(request)
    await erin.page.getByText('Use newshop').first().waitFor()
    assert.equal(await state(erin, request), 'Refused')
    await erin.page.goto('/nodes/link')
    await field(erin, 'Host name or address').fill('host.example.org')
    await field(erin, 'Why you need it').fill('Room for us')
    await pages.press(erin, 'Ask for the compute node')
    request = pages.here(erin)
    await opens(/host\.example\.org/)
    await field(alice, 'Why').fill('There is room')
    await pages.press(alice, 'Refuse request')
    await erin.page.goto(request)
    await erin.page.getByText('There is room').first().waitFor()
    assert.equal((await dave.page.goto(request)).status(), 404, 'it is nobody else\'s')
    assert.equal((await erin.page.goto('/projects/othershop')).status(), 404)
  })
})
