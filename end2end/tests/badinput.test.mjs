// Bad input and bad luck, as they reach a person at the browser: a clear error at the right
// place, nothing lost of what was typed, nothing left behind.
import assert from 'node:assert/strict'
import path from 'node:path'
import test from 'node:test'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Relay } from '../relay.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const NODE = 'node1'
const OTHER = 'node2'
const zone = `bad.${lab.lab.zone}`
const { env } = lab.lab

/** By login name or surname: the lab has two people whose surname is Twin. */
const AMBIGUOUS = '(&(objectClass=inetOrgPerson)(|(uid={login})(sn={login})))'

/** What is no host name, and what a line of text can hold of it. */
const NO_NAMES = ['www;reboot.example.org', '$(reboot).example.org', '`id`.example.org', 'a b.example.org', '-a.example.org',
  'a-.example.org', 'a..example.org', `${'a'.repeat(300)}.org`, 'www.ex\u0430mple.org', '\uFB00.example.org', 'a_b.example.org', '../etc', '10.0.0.1']

test('bad input and bad luck', async t => {
  await lab.cleanLab()
  const ldap = await Relay.open(env.CORPUS_LAB_LDAPS_URL)
  const dns = await Relay.open(env.CORPUS_LAB_DNS_API)
  const server = await Server.start('badinput', {
    ldap: { url: ldap.url, people_filter: AMBIGUOUS },
    dns: { api_url: dns.url },
  })
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
    await Promise.all([ldap.down(), dns.down()])
    await lab.fault('heal', NODE)
  })
  const step = story(t, visitors, server, { goOn: true })
  let alice, bob, node, guest

  /** A fresh visitor who is not signed in. */
  async function stranger(options) {
    const visitor = await Visitor.open(browser, server, options)
    visitors.push(visitor)
    return visitor
  }

  /** The page says why, says it as an error, and says something of `words`. */
  async function refused(visitor, words, field) {
    await pages.summary(visitor).waitFor()
    const text = await (field ? pages.errorAt(visitor, field) : pages.summary(visitor)).innerText()
    assert.match(text, words)
    assert.doesNotMatch(text, /undefined|panicked|Error \{|Some\(/, 'the text is for a person')
  }

  /** The session ends at the server, and the browser does not know. */
  async function endSession({ context }) {
    const before = await context.cookies()
    await context.request.post('/logout', { headers: { origin: server.url } })
    await context.addCookies(before)
  }

  /** Signs in where a form came when the session had ended: wrong, then right. */
  async function signInAgain(visitor, login) {
    const kept = visitor.page.getByText('Your session ended. Sign in to go on; what you typed is kept.')
    await kept.waitFor()
    await pages.signInHere(visitor, login, 'wrong')
    await pages.summary(visitor).waitFor()
    await kept.waitFor()
    await pages.signInHere(visitor, login, lab.lab.password)
    await refused(visitor, /ended before this was sent[\s\S]*send it again/)
  }

  /** The job that a form has started fails, and what it had done is undone. */
  async function undone(visitor, words) {
    await visitor.page.goto('/jobs?state=all')
    const job = await visitor.page.locator('main a[href^="/jobs/"]:not([href*="?"])').first().getAttribute('href')
    const html = await pages.jobEnds(visitor, job, 'Undone')
    assert.match(html.replace(/<[^>]*>/g, ' '), words)
  }

  await step('sign-in: wrong and unknown get the same answer, disabled and ambiguous do not get in either', async () => {
    const answers = {}
    for (const [login, password] of [['bob', 'wrong'], ['nobody', lab.lab.password], ['erin', lab.lab.password], ['twin', lab.lab.password]]) {
      const visitor = await stranger()
      await visitor.signIn(login, password)
      await pages.summary(visitor).waitFor()
      answers[login] = await pages.summary(visitor).innerText()
      assert.equal(await visitor.page.getByLabel('Login name').inputValue(), login, 'the name is kept')
      await visitor.close()
    }
    assert.equal(answers.bob, answers.nobody)
    // A directory that locks the account itself does not tell it from a wrong password.
    assert.match(answers.erin, /disabled|not right/)
    assert.match(answers.twin, /more than one/i)
  })

  await step('sign-in: an empty password is refused', async () => {
    const visitor = await stranger()
    await visitor.page.goto('/login')
    await visitor.page.locator('form.login').evaluate(form => (form.noValidate = true))
    await visitor.page.getByLabel('Login name').fill('bob')
    await visitor.page.getByRole('button', { name: 'Sign in' }).click()
    await pages.summary(visitor).waitFor()
    await visitor.close()
  })

  await step('alice and bob sign in', async () => {
    alice = await stranger()
    await alice.enter('alice', lab.lab.password)
    bob = await stranger()
    await bob.enter('bob', lab.lab.password)
  })

  await step('a form from another site is refused', async () => {
    const answer = await bob.context.request.post('/keys', { form: { line: 'x' }, headers: { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' } })
    assert.equal(answer.status(), 403)
  })

  await step('what bob may not do, he can\'t', async () => {
    await bob.page.goto('/nodes/link')
    await bob.page.getByRole('heading', { level: 1, name: 'Ask for a compute node' }).waitFor()
    const answer = await bob.context.request.post('/zones', { form: { name: zone, access: 'all' }, headers: { origin: server.url } })
    assert.equal(answer.status(), 403)
    assert.equal(await lab.zoneRecords(zone), null)
  })

  await step('zones: names that are none', async () => {
    for (const name of NO_NAMES) {
      await pages.createZone(alice, name)
      await refused(alice, /DNS name|host name|zone/i, 'name')
      assert.equal(await alice.page.getByLabel('Zone name').inputValue(), name, 'what was typed is kept')
    }
  })

  await step('zones: PowerDNS down is said, and it works when it is up again', async () => {
    await dns.down()
    alice.expected.add(503)
    await pages.createZone(alice, zone)
    await refused(alice, /DNS server/i)
    assert.equal(await alice.page.getByLabel('Zone name').inputValue(), zone)
    await dns.up()
    await pages.press(alice, 'Create the zone')
    assert.ok(await lab.zoneRecords(zone), 'PowerDNS holds the zone')
    alice.expected.delete(503)
    await pages.createZone(alice, zone)
    await refused(alice, /already|taken/i, 'name')
  })

  await step('SSH keys: a private key, a weak one, options, garbage, the same twice', async () => {
    const key = await lab.makeKey(path.join(server.folder, 'key'))
    const weak = await lab.makeKey(path.join(server.folder, 'weak'), ['-t', 'rsa', '-b', '2048'])
    await pages.addKey(bob, key.private)
    await refused(bob, /private key[\s\S]*not stored[\s\S]*\.pub/i, 'line')
    const secret = key.private.split('\n')[2]
    assert.ok(!(await bob.page.content()).includes(secret), 'the page does not show it')
    assert.ok(!server.text().includes(secret), 'no log holds it')
    for (const [line, words] of [[weak.line, /2048/], [`command="reboot" ${key.line}`, /options/i], ['hello', /public key/i], [`${key.line}\n${weak.line}`, /one key|lines/i]]) {
      await pages.addKey(bob, line)
      await refused(bob, words, 'line')
    }
    await pages.addKey(bob, key.line)
    await bob.page.locator('code[data-value=key-fingerprint]').waitFor()
    await pages.addKey(bob, key.line)
    await refused(bob, /already/i, 'line')
    await bob.page.goto('/keys')
    assert.equal(await bob.page.locator('code[data-value=key-fingerprint]').count(), 1)
  })

  await step('a refused form is there again after Back, Forward and a reload, and gone when it went through', async () => {
    const key = await lab.makeKey(path.join(server.folder, 'later'))
    const line = () => bob.page.getByLabel('Public key', { exact: true })
    await pages.addKey(bob, 'no key at all')
    await refused(bob, /public key/i, 'line')
    const place = bob.page.url()
    await bob.page.goto('/mail')
    for (const move of ['goBack', 'reload', 'goForward', 'goBack']) {
      await bob.page[move]()
      if (move === 'goForward') continue
      await refused(bob, /public key/i, 'line')
      assert.equal(await line().inputValue(), 'no key at all', move)
    }
    // Where it was shown, it is sent again, and refused again: the way back is no longer for that.
    await line().fill('no key either')
    await pages.press(bob, 'Add the key')
    await refused(bob, /public key/i, 'line')
    await line().fill(key.line)
    await pages.press(bob, 'Add the key')
    await bob.page.locator('code[data-value=key-fingerprint]').nth(1).waitFor()
    await bob.page.goto('/mail')
    await bob.page.goto(place)
    assert.equal(await pages.summary(bob).count(), 0, 'what went through comes back no more')
    assert.equal(await line().inputValue(), '')
  })

  await step('link: addresses that are none, that do not answer, ports that are none', async () => {
    for (const address of ['10.0.0.256', 'a;b', '$(reboot)', 'x'.repeat(300)]) {
      await pages.probe(alice, { address })
      await refused(alice, /address|host name/i, 'address')
    }
    await pages.probe(alice, { address: lab.lab.nodes[NODE], port: 99999 })
    await refused(alice, /port/i, 'port')
    await pages.probe(alice, { address: lab.lab.nodes[NODE], user: 'a b' })
    await refused(alice, /user/i, 'user')
    await pages.probe(alice, { address: lab.lab.nodes[NODE], network: '8.8.8.8/16' })
    await refused(alice, /network/i, 'network')
    await pages.probe(alice, { address: lab.lab.nowhere })
    await refused(alice, /answer|reach/i, 'address')
    await pages.probe(alice, { address: lab.lab.nodes[NODE], port: 23 })
    await refused(alice, /refused|answer|reach/i, 'address')
    assert.equal(await alice.page.getByLabel('Host name or address', { exact: true }).inputValue(), lab.lab.nodes[NODE])
  })

  await step('link: a wrong password, no password and no key, a user without sudo', async () => {
    const attempts = [
      [{ password: 'wrong' }, /password/i],
      [{ password: '' }, /key|password/i],
      [{ user: 'nosudo' }, /root|sudo/i],
    ]
    for (const [options, words] of attempts) {
      await pages.probe(alice, { address: lab.lab.nodes[OTHER], ...options })
      await alice.page.locator('code[data-value=fingerprint]').waitFor()
      await pages.confirmHost(alice, options.password ?? lab.lab.nodePassword)
      await alice.page.locator('#error-summary, main[data-page=node]').waitFor()
      if (await pages.summary(alice).count()) await refused(alice, words)
      else await undone(alice, words)
    }
    await lab.untilClean(OTHER)
    await alice.page.goto('/nodes')
    assert.equal(await alice.page.getByText(lab.lab.nodes[OTHER], { exact: true }).count(), 0)
  })

  await step('link: by a user with sudo; the same host twice is refused', async () => {
    node = await pages.readyNode(alice, NODE, { user: 'admin' })
    await pages.probe(alice, { address: lab.lab.nodes[NODE] })
    await alice.page.locator('code[data-value=fingerprint], #error-summary').first().waitFor()
    if (!await pages.summary(alice).count()) await pages.confirmHost(alice, lab.lab.nodePassword)
    await refused(alice, /already/i)
  })

  await step('guests: names that are none keep the whole form', async () => {
    for (const name of NO_NAMES) {
      await pages.fillRequest(bob, { name, environment: 'staging', size: 'medium' })
      await pages.press(bob, 'Request the guest')
      await refused(bob, /name/i, 'name')
      assert.equal(await bob.page.locator('[name=name]').inputValue(), name)
      assert.equal(await bob.page.locator('[name=size]').inputValue(), 'medium')
      assert.equal(await bob.page.locator('[name=environment]').inputValue(), 'staging')
    }
  })

  await step('guests: a request that is refused is there again after Back', async () => {
    await pages.fillRequest(bob, { name: '-a.example.org', environment: 'staging', size: 'medium' })
    await pages.press(bob, 'Request the guest')
    await refused(bob, /name/i, 'name')
    await bob.page.goto('/guests')
    await bob.page.goBack()
    await refused(bob, /name/i, 'name')
    assert.equal(await bob.page.locator('[name=name]').inputValue(), '-a.example.org')
    assert.equal(await bob.page.locator('[name=size]').inputValue(), 'medium')
  })

  await step('guests: a request that comes when the session has ended is there again after signing in', async () => {
    const wanted = { name: `late.${zone}`, environment: 'staging', size: 'medium', memory: '700 MiB', names: `a.${zone}\nb.${zone}` }
    await pages.fillRequest(bob, { ...wanted, password: 'a password that is long' })
    await endSession(bob)
    // The page looks for what is new every few seconds, and stays.
    await bob.page.locator('#session-ended').waitFor()
    await pages.press(bob, 'Request the guest')
    await signInAgain(bob, 'bob')
    assert.equal(pages.here(bob), '/guests/new')
    for (const [field, value] of Object.entries(wanted)) {
      const control = bob.page.locator(`[name=${field}]`)
      assert.equal(await control.inputValue(), value, field)
      assert.ok(await control.isVisible(), `${field} can be seen`)
    }
    assert.equal(await bob.page.locator('[name=password]').inputValue(), '')
    assert.ok(!(await bob.read('/guests')).html.includes(wanted.name), 'nothing was requested')
    // Sent now, it is a form like any other.
    await bob.page.locator('[name=name]').fill('-a.example.org')
    await pages.press(bob, 'Request the guest')
    await refused(bob, /name/i, 'name')
  })

  await step('zones: a form that is sent in place when the session has ended is there again, too', async () => {
    await alice.page.goto('/dns')
    await alice.page.getByLabel('Zone name').fill(`late.${zone}`)
    await alice.page.getByLabel('All projects', { exact: true }).check()
    await endSession(alice)
    await pages.press(alice, 'Create the zone')
    await signInAgain(alice, 'alice')
    assert.equal(pages.here(alice), '/dns')
    assert.equal(await alice.page.getByLabel('Zone name').inputValue(), `late.${zone}`)
    assert.ok(await alice.page.getByLabel('All projects', { exact: true }).isChecked())
    assert.equal(await lab.zoneRecords(`late.${zone}`), null, 'nothing was made')
  })

  await step('a page that is asked for when the session has ended says so, and is there after signing in', async () => {
    await bob.page.goto('/guests?state=failed')
    await endSession(bob)
    await bob.page.goto('/guests?state=failed')
    await bob.page.getByText('Your session ended. Sign in to go on.').waitFor()
    await pages.signInHere(bob, 'bob', lab.lab.password)
    assert.ok(bob.page.url().endsWith('/guests?state=failed'), bob.page.url())
  })

  await step('guests: a line break smuggled past the browser is refused', async () => {
    await pages.fillRequest(bob, { name: `www.${zone}` })
    const form = await bob.page.locator('main form[action="/guests"]').evaluate(element => Object.fromEntries(new FormData(element)))
    const answer = await bob.context.request.post('/guests', { form: { ...form, name: 'a.example.org\nreboot' }, headers: { origin: server.url } })
    assert.equal(answer.status(), 422)
  })

  await step('guests: addresses, MACs and passwords that are none', async () => {
    const wrong = { ip: ['8.8.8.8', '10.5.0.1', '10.5.0.0', 'x'], mac: ['00:11:22:33:44:55', 'x'], password: ['short'], names: ['no;name', 'www.example.com'] }
    for (const [field, values] of Object.entries(wrong)) {
      for (const value of values) {
        await pages.fillRequest(bob, { name: `www.${zone}`, [field]: value })
        await pages.press(bob, 'Request the guest')
        await refused(bob, /\w{4}/, field)
      }
    }
  })

  await step('guests: two browsers ask for one name at once, and one of them gets it', async () => {
    const other = await stranger()
    await other.enter('bob', lab.lab.password)
    const name = `www.${zone}`
    const form = '/guests/new'
    await Promise.all([bob, other].map(visitor => pages.fillRequest(visitor, { name, size: 'xxsmall' })))
    await Promise.all([bob, other].map(visitor => pages.press(visitor, 'Request the guest')))
    const outcomes = await Promise.all([bob, other].map(async visitor => {
      await visitor.page.locator('main[data-page=guest], #error-summary').first().waitFor()
      return pages.here(visitor)
    }))
    assert.deepEqual(outcomes.map(place => place === form).sort(), [false, true], outcomes.join())
    await refused(outcomes[0] === form ? bob : other, /already|taken/i, 'name')
    guest = outcomes.find(place => place !== form)
    await pages.untilStatus(bob, guest, 'Running')
  })

  await step('guests: an address that is taken', async () => {
    const ip = pages.valueIn((await bob.read(guest)).html, 'ip').split('/')[0]
    await pages.fillRequest(bob, { name: `second.${zone}`, ip })
    await pages.press(bob, 'Request the guest')
    await refused(bob, /taken|already|use/i, 'ip')
  })

  await step('guests: a form sent twice is one request', async () => {
    await pages.fillRequest(bob, { name: `twice.${zone}`, size: 'xxsmall' })
    const form = await bob.page.locator('main form[action="/guests"]').evaluate(element => Object.fromEntries(new FormData(element)))
    const send = () => bob.context.request.post('/guests', { form, headers: { origin: server.url }, maxRedirects: 0 })
    // What comes while the first is worked on is told so; sent again it is answered like the first.
    const first = await Promise.all([send(), send(), send()])
    assert.ok(first.every(answer => [303, 409].includes(answer.status())), first.map(answer => answer.status()).join())
    const taken = first.filter(answer => answer.status() === 303 && !pages.isKept(answer.headers().location))
    const answers = [...taken, await send()]
    const places = new Set(answers.map(answer => answer.headers().location))
    assert.equal(answers.at(-1).status(), 303)
    assert.equal(places.size, 1, [...places].join())
    const [place] = places
    await pages.untilStatus(bob, place, 'Running')
    await pages.jobEnds(bob, await pages.destroy(bob, place, `twice.${zone}`))
  })

  await step('names: outside every zone, taken, PowerDNS down', async () => {
    const name = `site.${zone}`
    await pages.attach(bob, guest, 'www.example.com')
    await refused(bob, /zone/i, 'name')
    await pages.attach(bob, guest, name)
    await pages.nameIs(bob, guest, name, 'Attached')
    await pages.attach(bob, guest, name)
    await refused(bob, /already|taken/i, 'name')
    await dns.down()
    await pages.attach(bob, guest, `later.${zone}`)
    await dns.up()
    await pages.nameIs(bob, guest, `later.${zone}`, 'Attached', { limit: 60_000 })
  })

  await step('LDAP down: a clear page, the local realm still works, who is signed in stays', async () => {
    await ldap.down()
    const visitor = await stranger()
    visitor.expected.add(503)
    await visitor.signIn('bob', lab.lab.password)
    await refused(visitor, /directory|LDAP/i)
    await visitor.signIn('admin', server.administrator(), 'local')
    await visitor.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await bob.page.goto('/guests')
    await bob.page.getByRole('heading', { level: 1, name: 'Guests' }).waitFor()
    await ldap.up()
    const again = await stranger()
    await again.enter('carol', lab.lab.password)
  })

  await step('the node is cut while a guest is made: the job says what it waits for, and goes on when it is healed', async () => {
    await pages.fillRequest(bob, { name: `cut.${zone}`, size: 'xxsmall' })
    await lab.fault('cut', NODE)
    await pages.press(bob, 'Request the guest')
    await bob.page.waitForURL(/\/guests\/[0-9a-f-]{36}$/)
    const place = pages.here(bob)
    // A page never waits for a node: it says what the job waits for.
    await until('a word about the node', async () => {
      const { html } = await bob.read(place)
      const notices = /id="live-notices"([\s\S]*?)<div class="cols"/.exec(html)[1].replace(/<[^>]*>/g, ' ')
      return notices.includes(lab.lab.nodes[NODE]) && /wait|answer/i.test(notices)
    }, { limit: 120_000 })
    await lab.fault('heal', NODE)
    await pages.untilStatus(bob, place, 'Running', { limit: 120_000 })
    await pages.jobEnds(bob, await pages.destroy(bob, place, `cut.${zone}`))
  })

  await step('the server is killed while a guest is made, and started again: the guest is made', async () => {
    await pages.fillRequest(bob, { name: `killed.${zone}`, size: 'xxsmall' })
    await pages.press(bob, 'Request the guest')
    await bob.page.waitForURL(/\/guests\/[0-9a-f-]{36}$/)
    const place = pages.here(bob)
    // A page that is open would say on the console that its server is gone, and that is no fault of it.
    for (const visitor of visitors) await visitor.page.goto('about:blank').catch(() => {})
    await server.kill()
    await server.run()
    await pages.untilStatus(bob, place, 'Running', { limit: 120_000 })
    await pages.jobEnds(bob, await pages.destroy(bob, place, `killed.${zone}`))
  })

  await step('a node that shows another host key is blocked, and says so until a person confirms', async () => {
    const other = await pages.link(alice, OTHER)
    await pages.untilStatus(alice, other, 'Linked')
    await lab.onNode(OTHER, 'cd /etc/ssh && mkdir kept && mv ssh_host_* kept/ && ssh-keygen -q -t ed25519 -N "" -f ssh_host_ed25519_key && systemctl restart ssh')
    await lab.onNode(OTHER, 'pkill -f "^sshd: root" || true').catch(() => {})
    await pages.untilStatus(alice, other, 'Host key changed', { limit: 60_000 })
    await alice.page.goto(other)
    await alice.page.getByText('another key').first().waitFor()
    await pages.press(alice, 'Read the host key again')
    const shown = (await alice.page.locator('code[data-value=fingerprint]').textContent()).trim()
    assert.ok((await lab.fingerprints(OTHER)).includes(shown))
    await pages.press(alice, 'This is the host: trust the new key')
    await pages.untilStatus(alice, other, 'Linked', { never: [] })
    await pages.jobEnds(alice, await pages.unlink(alice, other, lab.lab.nodes[OTHER]))
    await lab.onNode(OTHER, 'cd /etc/ssh && mv kept/* . && rmdir kept && systemctl restart ssh')
  })

  await step('a node with a guest is not unlinked; a wrong confirmation is asked for again', async () => {
    await alice.page.goto(`${node}/unlink`)
    await alice.page.getByLabel(`Type ${lab.lab.nodes[NODE]} to confirm`).fill('something else')
    await pages.press(alice, 'Unlink this node')
    await refused(alice, /confirm|type/i, 'confirm')
    await alice.page.getByLabel(`Type ${lab.lab.nodes[NODE]} to confirm`).fill(lab.lab.nodes[NODE])
    await pages.press(alice, 'Unlink this node')
    await refused(alice, /guest/i)
  })

  await step('everything is taken away again', async () => {
    await pages.jobEnds(bob, await pages.destroy(bob, guest, `www.${zone}`))
    await pages.jobEnds(alice, await pages.unlink(alice, node, lab.lab.nodes[NODE]))
    const records = await lab.zoneRecords(zone)
    assert.deepEqual(records.map(set => set.type).sort(), ['NS', 'SOA'])
    await pages.removeZone(alice, zone)
    for (const name of [NODE, OTHER]) {
      // The agent of the line that was cut ends when the host's sshd notices that the line is dead.
      await lab.untilClean(name, name === NODE ? { except: / serve$/ } : {})
    }
  })
})
