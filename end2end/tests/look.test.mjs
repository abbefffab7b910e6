// Every page, wide and light, narrow and dark: no overflow, nothing for axe to report, usable by the keyboard.
// Leaves a picture of each in end2end/out. With CORPUS_TEST_LOOKS=all each width in each scheme.
import assert from 'node:assert/strict'
import path from 'node:path'
import test from 'node:test'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import * as look from '../look.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const NODE = 'node1'
const zone = `look.${lab.lab.zone}`
const guestName = `www.${zone}`
// Most of what a width breaks it breaks in both schemes; what only a narrow, light page has is seen with all of them.
const OTHERS = process.env.CORPUS_TEST_LOOKS === 'all' ? [[1440, 'dark'], [390, 'light']] : []
const LOOKS = [[1440, 'light'], [390, 'dark'], ...OTHERS]

test('how every page looks', async t => {
  await lab.cleanLab()
  const server = await Server.start('look')
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
  })
  const step = story(t, visitors, server, { goOn: true })
  let alice, node, guest, job, key, device

  await step('something to look at: a node, a guest, a name, keys, jobs', async () => {
    alice = await Visitor.open(browser, server)
    visitors.push(alice)
    await alice.enter('alice', lab.lab.password)
    // The project is known from the first of its members who signs in.
    await (await Visitor.open(browser, server)).enter('bob', lab.lab.password)
    await pages.createZone(alice, zone)
    key = await lab.makeKey(path.join(server.folder, 'alice'))
    await pages.addKey(alice, key.line)
    node = await pages.readyNode(alice, NODE)
    guest = await pages.requestGuest(alice, { name: guestName, project: 'atlas', environment: 'prod', size: 'medium' })
    await pages.untilStatus(alice, guest, 'Running')
    await pages.attach(alice, guest, `site.${zone}`)
    await pages.nameIs(alice, guest, `site.${zone}`, 'Attached')
    await alice.page.goto('/projects/atlas/robots')
    await alice.page.getByLabel('Name').fill('ci')
    await alice.page.getByLabel('prod').check()
    await pages.press(alice, 'Make the robot')
    await alice.page.goto('/jobs?state=all')
    job = await alice.page.locator('main a[href^="/jobs/"]').first().getAttribute('href')
    const body = new URLSearchParams({ client_id: 'corpus on desk' })
    device = (await (await fetch(`${server.url}/oauth/device`, { method: 'POST', body })).json()).user_code
  })

  const places = () => ({
    overview: '/', nodes: '/nodes', link: '/nodes/link', even: '/nodes/balance', node, unlink: `${node}/unlink`, empty: `${node}/empty`, guests: '/guests', choice: '/guests/choice', request: '/guests/new',
    guest, move: `${guest}/move`, destroy: `${guest}/destroy`, firewall: `${guest}/firewall`, guestMail: `${guest}/mail`, guestStates: `${guest}/states`, states: '/states', projectStates: '/projects/atlas/states', guestUsers: '/projects/atlas/users', saltMasters: '/salt-masters', baseline: '/baseline', nodeBaseline: `${node}/baseline`, snapshots: `${guest}/snapshots`, guestBackups: `${guest}/backups`, projectBackups: '/projects/atlas/backups', projectImages: '/projects/atlas/images', nodeFirewall: `${node}/firewall`, environmentFirewall: '/projects/atlas/dev/firewall', environmentMail: '/projects/atlas/dev/mail', environmentBackups: '/projects/atlas/prod/backups', traffic: '/projects/atlas/prod/traffic', networks: '/networks', intrusion: '/intrusion', dns: '/dns', jobs: '/jobs?state=all', job, keys: '/keys', notices: '/notices', mail: '/mail', audit: '/audit', quotas: '/quotas', requests: '/requests', rules: '/requests/rules', hooks: '/hooks', backups: '/controller-backups', images: '/images', webhooks: '/projects/atlas/webhooks', project: '/projects/atlas', ending: '/projects/atlas/remove', missing: '/no-such-page',
    tokens: '/tokens', robots: '/projects/atlas/robots', robot: '/projects/atlas/robots/ci', device: `/device?code=${device}`, search: `/search?q=${zone}`, api: '/api', operation: '/api/request_guest',
    docs: '/docs', document: '/docs/first-steps', section: '/docs/api#tokens', found: '/docs?q=guest',
  })

  for (const [width, colorScheme] of LOOKS) {
    await step(`${width} pixels, ${colorScheme}`, async () => {
      const faults = await survey({ width, colorScheme })
      assert.deepEqual(faults, [])
    })
  }

  /** Visits every page at one size in one scheme; returns what is wrong with them. */
  async function survey({ width, colorScheme }) {
    const options = { viewport: { width, height: 900 }, colorScheme, storageState: await alice.context.storageState() }
    const visitor = await Visitor.open(browser, server, options)
    visitors.push(visitor)
    const faults = []
    for (const [name, place] of Object.entries(places())) {
      await visitor.page.goto(place)
      faults.push(...await judge(visitor, name, width, colorScheme))
    }
    await visitor.page.goto('/')
    await visitor.alive()
    await visitor.page.keyboard.press('Control+k')
    await visitor.page.getByRole('option', { name: 'Request a guest' }).waitFor()
    faults.push(...await judge(visitor, 'palette', width, colorScheme))
    const stranger = await Visitor.open(browser, server, { ...options, storageState: undefined })
    visitors.push(stranger)
    await stranger.page.goto('/login')
    faults.push(...await judge(stranger, 'login', width, colorScheme))
    await stranger.signIn('alice', 'wrong')
    await pages.summary(stranger).waitFor()
    faults.push(...await judge(stranger, 'login-refused', width, colorScheme))
    await pages.probe(visitor, { address: lab.lab.nodes.node2 })
    await visitor.page.locator('code[data-value=fingerprint]').waitFor()
    faults.push(...await judge(visitor, 'link-confirm', width, colorScheme))
    await pages.probe(visitor, { address: lab.lab.nodes.node2, gateway: { address: lab.lab.nodes.node1 } })
    await visitor.page.locator('code[data-value=gateway-fingerprint]').waitFor()
    faults.push(...await judge(visitor, 'link-gateway', width, colorScheme))
    await pages.confirmGateway(visitor, lab.lab.nodePassword)
    await visitor.page.locator('code[data-value=fingerprint]').waitFor()
    faults.push(...await judge(visitor, 'link-behind', width, colorScheme))
    await visitor.page.getByRole('button', { name: 'Change the values' }).click()
    await visitor.page.getByLabel("Gateway's host name or address").waitFor()
    faults.push(...await judge(visitor, 'link-again', width, colorScheme))
    await pages.fillRequest(visitor, { name: 'not;a;name', ip: '1.2.3.4' })
    await visitor.page.getByRole('button', { name: 'Request the guest' }).click()
    await pages.summary(visitor).waitFor()
    faults.push(...await judge(visitor, 'request-refused', width, colorScheme))
    return faults
  }

  async function judge(visitor, name, width, colorScheme) {
    const { page } = visitor
    await page.evaluate(() => document.fonts.ready)
    const dark = await look.isDark(page)
    const found = [...await look.overflow(page), ...await look.violations(page)]
    if (dark !== (colorScheme === 'dark')) found.push(`the page is ${dark ? 'dark' : 'light'}`)
    await visitor.screenshot(`look-${name}-${width}-${colorScheme}`)
    // What is behind a dialog is out of reach, as it should be.
    if (colorScheme === 'light' && name !== 'palette') found.push(...await look.unreachable(page))
    return found.map(fault => `${name}: ${fault}`)
  }

  await step('a chosen theme goes before the system\'s', async () => {
    const visitor = await Visitor.open(browser, server, { colorScheme: 'light', storageState: await alice.context.storageState() })
    visitors.push(visitor)
    await visitor.page.goto('/')
    await visitor.page.getByRole('button', { name: 'Dark', exact: true }).click()
    await visitor.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await until('a dark page', () => look.isDark(visitor.page))
  })

  await step('everything is taken away again', async () => {
    await pages.jobEnds(alice, await pages.destroy(alice, guest, guestName))
    await pages.jobEnds(alice, await pages.unlink(alice, node, lab.lab.nodes[NODE]))
    await pages.removeZone(alice, zone)
    await lab.untilClean(NODE)
  })

  await step('the server logged no error', async () => {
    assert.deepEqual(server.errors(), [])
  })
})
