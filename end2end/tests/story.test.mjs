// The whole story on real parts: from signing in to a guest with a web page under its own name,
// and back to nothing. Nothing on the way is simulated. Ends with the measures.
import assert from 'node:assert/strict'
import path from 'node:path'
import test from 'node:test'
import * as bare from '../bare.mjs'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import { measure } from '../lighthouse.mjs'
import { report, seconds } from '../measures.mjs'
import * as pages from '../pages.mjs'
import { run, timed, until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const NODE = 'node1'
const address = lab.lab.nodes[NODE]
const zone = `story.${lab.lab.zone}`
const guestName = `www.${zone}`
const siteName = `site.${zone}`

test('from signing in to a guest and back to nothing', async t => {
  await lab.cleanLab()
  const server = await Server.start('story')
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
  })
  const step = story(t, visitors, server)
  const measured = {}
  let alice, bob, key, node, guest, shown

  await step('alice of ops and bob of atlas sign in with LDAP', async () => {
    alice = await Visitor.open(browser, server)
    visitors.push(alice)
    await alice.enter('alice', lab.lab.password)
    bob = await Visitor.open(browser, server)
    visitors.push(bob)
    await bob.enter('bob', lab.lab.password)
  })

  await step('the server is small when idle', async () => {
    // Idle is a fact to observe: two readings of its processor time that are the same.
    let before = -1
    await until('an idle server', () => {
      const now = server.ticks()
      const idle = now === before
      before = now
      return idle
    }, { pause: 500 })
    measured.resident = server.resident()
  })

  await step('alice creates a DNS zone', async () => {
    await pages.createZone(alice, zone)
    await alice.page.getByText(zone, { exact: true }).first().waitFor()
    assert.ok(await lab.zoneRecords(zone), 'PowerDNS holds the zone')
  })

  await step('alice links the node after comparing its fingerprint', async () => {
    await pages.probe(alice, { address })
    const fingerprint = (await alice.page.locator('code[data-value=fingerprint]').textContent()).trim()
    assert.ok((await lab.fingerprints(NODE)).includes(fingerprint), `${fingerprint} is what ssh-keygen prints on the node`)
    const [ms, html] = await timed(async () => {
      await pages.confirmHost(alice, lab.lab.nodePassword)
      await alice.page.waitForURL(/\/nodes\/[0-9a-f-]{36}$/)
      node = pages.here(alice)
      return pages.untilStatus(alice, node, 'Linked', { pause: 30 })
    })
    measured.link = ms
    assert.match(html, /Debian GNU\/Linux 12/, 'the facts are shown')
    assert.doesNotMatch(server.text(), new RegExp(lab.lab.nodePassword), 'the one-time password is in no log')
    // The page that was open since then came to know it by itself.
    await alice.page.locator('.head .status', { hasText: 'Linked' }).waitFor()
  })

  await step('alice initializes it, and watches the steps live', async () => {
    await pages.initialize(alice, node)
    const begin = performance.now()
    const ready = pages.untilStatus(alice, node, 'Ready', { limit: 180_000, pause: 30 }).then(() => (measured.initialize = performance.now() - begin))
    await alice.page.getByRole('link', { name: 'Follow the job' }).first().click()
    await alice.page.locator('main[data-page=job]').waitFor()
    await alice.page.evaluate(() => { window.stayed = true })
    await alice.page.locator('#steps li[data-state=running]').first().waitFor()
    await alice.page.locator('.head .status', { hasText: 'Done' }).waitFor({ timeout: 180_000 })
    assert.equal(await alice.page.evaluate(() => window.stayed), true, 'the page was never loaded again')
    const states = await alice.page.locator('#steps li').evaluateAll(items => items.map(item => item.dataset.state))
    assert.ok(states.length > 2 && states.every(state => state === 'done'), states.join())
    assert.ok((await alice.page.locator('#log').innerText()).length > 0, 'the log is shown')
    await ready
  })

  await step('bob adds an SSH key', async () => {
    key = await lab.makeKey(path.join(server.folder, 'bob'))
    await pages.addKey(bob, key.line)
    const fingerprint = (await run('ssh-keygen', ['-lf', `${key.path}.pub`])).split(' ')[1]
    await bob.page.getByText(fingerprint).first().waitFor()
  })

  await step('bob requests a container, and enters it by the command that the page shows', async () => {
    await pages.fillRequest(bob, { name: guestName, project: 'atlas', environment: 'prod', size: 'xxsmall' })
    const known = path.join(server.folder, 'known_hosts')
    const said = bob.page.locator('.check-said')
    await said.getByText(`${guestName} is free. It goes to ${address}`).waitFor()
    await bob.page.locator('[name=name]').fill('not a name')
    await pages.errorAt(bob, 'name').getByText(/is not valid/).waitFor()
    await bob.page.locator('[name=name]').fill(guestName)
    await pages.errorAt(bob, 'name').waitFor({ state: 'detached' })
    const begin = performance.now()
    await bob.page.getByRole('button', { name: 'Request the guest' }).click()
    await bob.page.waitForURL(/\/guests\/[0-9a-f-]{36}$/)
    guest = pages.here(bob)
    const running = pages.untilStatus(bob, guest, 'Running', { pause: 30 }).then(() => (measured.running = performance.now() - begin))
    shown = await until('the ssh command', async () => pages.valueIn((await bob.read(guest)).html, 'ssh'), { pause: 10 })
    const user = await until('a login', () => lab.pasted(shown, key.path, 'id -un', { knownHosts: known }), { pause: 10 })
    measured.login = performance.now() - begin
    assert.equal(user.trim(), 'sysadmin')
    await running
    const html = (await bob.read(guest)).html
    const hostKey = await run('ssh-keygen', ['-lf', known])
    assert.ok(hostKey.includes(pages.valueIn(html, 'host-fingerprint')), 'the page shows the guest\'s host key')
    assert.equal((await lab.pasted(shown, key.path, 'hostname')).trim(), guestName)
    assert.equal((await lab.pasted(shown, key.path, 'sudo -n id -u')).trim(), '0')
    assert.ok((await lab.pasted(shown, key.path, 'ip -br address')).includes(pages.valueIn(html, 'ip')))
    await bob.page.locator('.head .status', { hasText: 'Running' }).waitFor()
    await bob.screenshot('story-guest')
  })

  await step('bob finds it, and what one can do, without leaving the keyboard', async () => {
    const { page } = bob
    await page.goto('/')
    await bob.alive()
    const option = name => page.getByRole('option', { name })
    await page.keyboard.press('Control+k')
    await option('Request a guest').waitFor()
    await page.keyboard.type(guestName.slice(0, 6))
    await option(guestName).waitFor()
    await bob.screenshot('story-palette')
    await page.keyboard.press('Enter')
    await page.waitForURL(`**${guest}`)
    await bob.alive()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('nothing-is-called-so')
    await page.locator('.palette').getByText('Nothing is called so').waitFor()
    await page.keyboard.press('Escape')
    assert.equal(await page.locator('dialog.palette').evaluate(dialog => dialog.open), false)
  })

  await step('carol, a developer, sees the guest and may not destroy it; erin, disabled, may not sign in', async () => {
    const carol = await Visitor.open(browser, server)
    visitors.push(carol)
    await carol.enter('carol', lab.lab.password)
    await carol.page.goto(guest)
    assert.equal(await carol.page.getByRole('link', { name: 'Destroy guest', exact: true }).count(), 0)
    assert.equal((await carol.page.goto(`${guest}/destroy`)).status(), 403)
    const dave = await Visitor.open(browser, server)
    visitors.push(dave)
    await dave.enter('dave', lab.lab.password)
    assert.equal((await dave.page.goto(guest)).status(), 404)
    const erin = await Visitor.open(browser, server)
    visitors.push(erin)
    await erin.signIn('erin', lab.lab.password)
    await pages.summary(erin).waitFor()
    for (const visitor of [carol, dave, erin]) {
      visitor.check()
      await visitor.close()
      visitors.splice(visitors.indexOf(visitor), 1)
    }
  })

  await step('a web page served in the guest is reached under an attached name, and under no other', async () => {
    await lab.pasted(shown, key.path, 'echo "hello from $(hostname)" > index.html && sudo systemd-run -q --unit=web --working-directory=/home/sysadmin python3 -m http.server 80')
    await bob.page.goto(guest)
    await bob.page.getByLabel('DNS name', { exact: true }).fill(siteName)
    const begin = performance.now()
    await bob.page.getByRole('button', { name: 'Attach', exact: true }).click()
    const answer = await until('the page under its name', async () => {
      const [target] = await lab.resolved(siteName)
      const answer = target && (await lab.httpGet(target, siteName))
      return answer?.status === 200 && answer
    }, { pause: 10 })
    measured.attach = performance.now() - begin
    assert.equal(answer.body.trim(), `hello from ${guestName}`)
    await pages.nameIs(bob, guest, siteName, 'Attached')
    assert.equal((await lab.httpGet(address, `other.${zone}`)).status, 404)
    assert.equal((await lab.httpGet(address, siteName.toUpperCase())).status, 200, 'names have no case')
  })

  await step('the bare tools do the same work on the same node', async () => {
    const images = await lab.onNode(NODE, 'ls -d /var/lib/corpus/images/*/rootfs')
    measured.bare = {
      link: await bare.link(NODE),
      initialize: await bare.initialize(NODE, lab.lab.env.CORPUS_LAB_IMAGE),
      ...(await bare.guest(NODE, images.trim().split('\n')[0])),
      attach: await bare.attach(NODE, `bare.${zone}`, pages.valueIn((await bob.read(guest)).html, 'ip').split('/')[0]),
    }
  })

  await step('the root password is revealed, works, and alice sees that in the audit', async () => {
    const password = await pages.reveal(bob, guest)
    assert.match(password, /^[A-Za-z0-9]{24}$/)
    assert.equal((await lab.byPassword(shown, 'root', password, 'id -un')).trim(), 'root')
    await assert.rejects(lab.byPassword(shown, 'root', `${password}x`, 'true'))
    await alice.page.goto('/audit')
    await alice.page.locator('tr, li').filter({ hasText: 'bob' }).filter({ hasText: /reveal|password/i }).filter({ hasText: guestName }).first().waitFor()
    assert.ok(!(await alice.page.content()).includes(password), 'the audit does not hold the password')
    assert.ok(!server.text().includes(password), 'no log holds the password')
  })

  await step('pages are there before one notices, by Lighthouse', async () => {
    assert.deepEqual(await measure(bob, ['/', '/guests', guest, '/projects/atlas', '/deployments']), [])
  })

  await step('bob stops and starts the guest', async () => {
    await pages.power(bob, guest, 'Stop')
    await pages.untilStatus(bob, guest, 'Stopped')
    assert.match(await lab.onNode(NODE, `lxc-info -n ${guestName} -s`), /STOPPED/)
    await pages.power(bob, guest, 'Start')
    await pages.untilStatus(bob, guest, 'Running')
    await until('a login', () => lab.pasted(shown, key.path, 'true').then(() => true))
  })

  await step('a removed key no longer opens the guest', async () => {
    const second = await lab.makeKey(path.join(server.folder, 'bob-second'))
    await pages.addKey(bob, second.line)
    await until('the second key on the guest', () => lab.pasted(shown, second.path, 'true').then(() => true))
    const fingerprint = (await run('ssh-keygen', ['-lf', `${second.path}.pub`])).split(' ')[1]
    await pages.removeKey(bob, fingerprint)
    await until('the second key off the guest', () => lab.pasted(shown, second.path, 'true').then(() => false, () => true))
    await lab.pasted(shown, key.path, 'true')
  })

  await step('alice says how much a project may take; bob sees what is left, and is refused at the form', async () => {
    const set = async guests => {
      await alice.page.goto('/quotas')
      await alice.page.getByLabel('Guests', { exact: true }).fill(guests)
      await pages.press(alice, 'Set what holds by default')
      await alice.page.locator('main[data-page=quotas]').waitFor()
    }
    await set('many')
    await pages.errorAt(alice, 'guests').waitFor()
    await alice.page.getByLabel('Guests', { exact: true }).fill('1')
    await pages.press(alice, 'Set what holds by default')
    await alice.page.locator('#live-quotas tr', { hasText: 'atlas' }).getByText('1 of 1').waitFor()
    await alice.screenshot('story-quotas')
    const second = `second.${zone}`
    await pages.fillRequest(bob, { name: second, project: 'atlas', environment: 'dev', size: 'xxsmall' })
    // While it is typed already, and again by who sends it.
    await pages.errorAt(bob, 'project').getByText(/atlas has taken 1 of 1 guest/).waitFor()
    await bob.page.locator('.check-said').getByText('atlas has taken 1 of 1 guest.').waitFor()
    await pages.press(bob, 'Request the guest')
    await pages.summary(bob).getByText(/this takes 1 more: nothing is left.*ask an operator to raise its quota/).waitFor()
    assert.equal(await bob.page.locator('[name=name]').inputValue(), second, 'what was typed is kept')
    assert.match(await bob.page.locator('main form .taken').innerText(), /1 of 1 guest taken in atlas/)
    await bob.screenshot('story-quota-refused')
    // More for this project alone.
    await alice.page.goto('/projects/atlas')
    await alice.page.locator('#quota summary').click()
    await alice.page.locator('#quota').getByLabel('DNS names', { exact: true }).fill('1')
    await pages.press(alice, 'Set its quota')
    await alice.page.locator('#quota dd', { hasText: 'nothing left, set for this project' }).waitFor()
    await bob.page.goto(guest)
    await bob.page.locator('#names .taken', { hasText: '1 of 1 DNS name taken in atlas' }).waitFor()
    await bob.page.getByLabel('DNS name', { exact: true }).fill(`other.${zone}`)
    await bob.page.getByRole('button', { name: 'Attach', exact: true }).click()
    await pages.errorAt(bob, 'name').getByText(/atlas has taken 1 of 1 DNS name/i).waitFor()
    await bob.page.goto('/projects/atlas')
    assert.equal(await bob.page.locator('#quota form').count(), 0, 'a member sets nothing')
    await set('')
  })

  await step('bob destroys it', async () => {
    await bob.page.goto(`${guest}/destroy`)
    await bob.page.getByLabel(`Type ${guestName} to confirm`).fill(guestName)
    const begin = performance.now()
    await bob.page.getByRole('button', { name: 'Destroy this guest' }).click()
    await bob.page.waitForURL(/\/jobs\/[0-9a-f-]{36}$/)
    await pages.jobEnds(bob, pages.here(bob))
    measured.destroy = performance.now() - begin
    assert.deepEqual(await lab.resolved(siteName), [])
    assert.equal((await bob.page.goto(guest)).status(), 404)
  })

  await step('alice unlinks the node', async () => {
    const job = await pages.unlink(alice, node, address)
    await pages.jobEnds(alice, job)
    await alice.page.goto('/nodes')
    assert.equal(await alice.page.getByText(address, { exact: true }).count(), 0)
  })

  await step('nothing is left on the node and in PowerDNS', async () => {
    await lab.untilClean(NODE)
    const records = await lab.zoneRecords(zone)
    assert.deepEqual(records.map(set => set.type).sort(), ['NS', 'SOA'])
    await pages.removeZone(alice, zone)
    await until('the zone to be gone', async () => (await lab.zoneRecords(zone)) === null)
  })

  await step('the server logged no error', async () => {
    assert.deepEqual(server.errors(), [])
  })

  await step('the measures', async () => {
    const wasm = await sent(server)
    const { bare: floor } = measured
    report('Measured in this run', [
      { what: 'link: form sent to linked', corpus: seconds(measured.link), bare: seconds(floor.link), note: 'ssh-keyscan, ssh, scp, ssh' },
      { what: 'initialize', corpus: seconds(measured.initialize), bare: seconds(floor.initialize), note: 'scp and tar of the image, ip, nft' },
      { what: 'request to first SSH login', corpus: seconds(measured.login), bare: seconds(floor.create), note: 'overlay, lxc-start, ssh from the node itself' },
      { what: 'request to shown as running', corpus: seconds(measured.running) },
      { what: 'attach to first HTTP answer', corpus: seconds(measured.attach), bare: seconds(floor.attach), note: 'API call, map, haproxy reload' },
      { what: 'destroy', corpus: seconds(measured.destroy), bare: seconds(floor.destroy), note: 'lxc-stop -k, rm' },
      { what: 'server, resident when idle', corpus: `${(measured.resident / 1e6).toFixed(1)} MB`, note: 'without PostgreSQL; aim 60 MB' },
      { what: 'wasm as sent, brotli', corpus: `${(wasm / 1000).toFixed(0)} kB`, note: 'aim 400 kB' },
    ])
  })
})

/** The bytes of the wasm as a browser gets it. */
async function sent(server) {
  const html = await (await fetch(`${server.url}/login`)).text()
  const wasm = /\/pkg\/[\w.-]+\.wasm/.exec(html)?.[0]
  assert.ok(wasm, 'the page names its wasm')
  const [head, body] = await rawGet(`${server.url}${wasm}`)
  assert.equal(head['content-encoding'], 'br', 'the wasm is sent as brotli')
  return body
}

async function rawGet(url) {
  const { default: http } = await import('node:http')
  return new Promise((resolve, reject) => {
    http.get(url, { headers: { 'accept-encoding': 'br' } }, answer => {
      let length = 0
      answer.on('data', piece => (length += piece.length))
      answer.on('end', () => resolve([answer.headers, length]))
    }).on('error', reject)
  })
}
