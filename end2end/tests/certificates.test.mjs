// HTTPS of names: a name that is attached is served by HTTPS at once, by the authority of Corpus, whose root anybody can
// have; a redirect and HSTS are switched on and off; a certificate of one's own is brought; others see nothing of it.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import test from 'node:test'
import * as bare from '../bare.mjs'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import { report } from '../measures.mjs'
import * as pages from '../pages.mjs'
import { run, until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const NODE = 'node1'
const address = lab.lab.nodes[NODE]
const zone = `secure.${lab.lab.zone}`
const guestName = `web.${zone}`
const name = `shop.${zone}`

test('names are served by HTTPS', async t => {
  await lab.cleanLab()
  const server = await Server.start('certificates')
  const browser = await launch([`--host-resolver-rules=MAP ${name} ${address}`])
  const folder = mkdtempSync(path.join(os.tmpdir(), 'corpus-certificates-'))
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const step = story(t, visitors, server)
  const inFolder = file => path.join(folder, file)
  const root = inFolder('root.pem')
  let alice, bob, dave, guest, place

  const enters = async login => {
    const visitor = await Visitor.open(browser, server)
    visitors.push(visitor)
    await visitor.enter(login, lab.lab.password)
    return visitor
  }
  /** The headers, and at last the body, of what curl is answered by the node; it trusts `authority` only. */
  const curl = (url, { authority = root, more = [] } = {}) =>
    run('curl', ['-sS', '-i', '--noproxy', '*', '-m', '10', '--cacert', authority, '--resolve', `${name}:443:${address}`, '--resolve', `${name}:80:${address}`, ...more, url])
  const status = answer => Number(/^HTTP\/\S+ (\d+)/.exec(answer)?.[1])
  const serial = async () => (await run('openssl', ['x509', '-noout', '-serial'], { input: await run('openssl', ['s_client', '-connect', `${address}:443`, '-servername', name], { input: '' }) })).trim()
  const openssl = (...args) => run('openssl', args)

  await step('a guest with a site', async () => {
    alice = await enters('alice')
    await pages.createZone(alice, zone)
    await pages.readyNode(alice, NODE)
    bob = await enters('bob')
    dave = await enters('dave')
    const key = await lab.makeKey(inFolder('bob'))
    await pages.addKey(bob, key.line)
    guest = await pages.requestGuest(bob, { name: guestName, project: 'atlas', environment: 'dev', size: 'xxsmall' })
    await pages.untilStatus(bob, guest, 'Running')
    const shown = await until('the ssh command', async () => pages.valueIn((await bob.read(guest)).html, 'ssh'))
    await until('a login', () => lab.pasted(shown, key.path, 'id -un'))
    await lab.pasted(shown, key.path, 'echo "hello by TLS" > index.html && sudo systemd-run -q --unit=web --working-directory=/home/sysadmin python3 -m http.server 80')
  })

  await step('the root is had without a login, and is the one whose fingerprint members are shown', async () => {
    const answer = await fetch(`${server.url}/certificates/root.pem`)
    assert.equal(answer.status, 200)
    assert.match(answer.headers.get('cache-control'), /public/)
    writeFileSync(root, await answer.text())
    const mine = await openssl('x509', '-in', root, '-noout', '-fingerprint', '-sha256')
    const told = await (await bob.context.request.get('/api/v1/certificate-authority')).json()
    assert.equal(mine.trim().split('=')[1], told.fingerprint)
    assert.ok(!JSON.stringify(told).includes('PRIVATE'))
  })

  await step('an attached name is served by HTTPS at once, and shown so', async () => {
    await pages.attach(bob, guest, name)
    await pages.nameIs(bob, guest, name, 'Attached', { limit: 60_000 })
    const answer = await curl(`https://${name}/`)
    assert.equal(status(answer), 200)
    assert.match(answer, /hello by TLS/)
    const { html } = await bob.read(guest)
    assert.ok(html.includes(`href="https://${name}/"`), 'the link leads to HTTPS')
    place = /href="(\/names\/[0-9a-f-]{36})"/.exec(html)[1]
    const page = (await bob.read(place)).html
    assert.match(page, />Served</)
    assert.ok(page.includes('/certificates/root.pem'))
  })

  await step('Chromium is shown that certificate', async () => {
    const visitor = await browser.newContext({ ignoreHTTPSErrors: true })
    const page = await visitor.newPage()
    const answer = await page.goto(`https://${name}/`)
    assert.equal(answer.status(), 200)
    assert.equal((await answer.securityDetails()).subjectName, name)
    await visitor.close()
  })

  await step('who comes by HTTP is sent on, and browsers remember, once that is said', async () => {
    assert.equal(status(await curl(`http://${name}/`)), 200)
    await bob.page.goto(place)
    await bob.page.getByLabel('Send who comes by HTTP to HTTPS').check()
    await bob.page.getByLabel('Do browsers remember to come by HTTPS only (HSTS)?').selectOption('300')
    await pages.press(bob, 'Save HTTPS')
    await until('the redirect', async () => status(await curl(`http://${name}/where?a=b`)) === 308)
    assert.match(await curl(`http://${name}/where?a=b`), new RegExp(`location: https://${name}/where\\?a=b`, 'i'))
    assert.match(await curl(`https://${name}/`), /strict-transport-security: max-age=300/i)
    await bob.page.goto(place)
    assert.ok(await bob.page.getByLabel('Send who comes by HTTP to HTTPS').isChecked())
    await bob.page.getByLabel('Send who comes by HTTP to HTTPS').uncheck()
    await bob.page.getByLabel('Do browsers remember to come by HTTPS only (HSTS)?').selectOption('')
    await pages.press(bob, 'Save HTTPS')
    await until('no redirect', async () => status(await curl(`http://${name}/`)) === 200)
    assert.doesNotMatch(await curl(`https://${name}/`), /strict-transport-security/i)
  })

  await step('a new one is had at once', async () => {
    const before = await serial()
    await bob.page.goto(place)
    await pages.press(bob, 'Renew certificate now')
    await until('another serial number', async () => (await serial()) !== before)
    assert.equal(status(await curl(`https://${name}/`)), 200)
  })

  await step('the proxy adds little to what a plain one with the same certificate takes', async () => {
    const ip = pages.valueIn((await bob.read(guest)).html, 'ip').split('/')[0]
    const { fresh, kept } = await bare.https(NODE, name, ip, readFileSync(root))
    const at = (times, part) => times[Math.min(Math.floor(times.length * part), times.length - 1)]
    const ms = times => `${at(times, 0.5).toFixed(1)} / ${at(times, 0.95).toFixed(1)} ms`
    const added = ({ corpus, bare: plain }) => `adds ${(at(corpus, 0.5) - at(plain, 0.5)).toFixed(2)} / ${(at(corpus, 0.95) - at(plain, 0.95)).toFixed(2)} ms to a plain haproxy`
    report('HTTPS of a name, p50 / p95', [
      { what: 'a request with its handshake', corpus: ms(fresh.corpus), bare: ms(fresh.bare), note: added(fresh) },
      { what: 'a request on an open connection', corpus: ms(kept.corpus), bare: ms(kept.bare), note: added(kept) },
    ])
    // The machine does much else: what is wrong with the proxy costs more than this.
    for (const { corpus, bare: plain } of [fresh, kept]) assert.ok(at(corpus, 0.5) < at(plain, 0.5) * 2 + 5, 'no more than what such a machine does by itself')
  })

  const upload = async (chain, key) => {
    await bob.page.goto(place)
    await bob.page.locator('#upload summary').first().click()
    await bob.page.getByLabel('Certificates', { exact: true }).fill(chain)
    await bob.page.getByLabel('Private key', { exact: true }).fill(key)
    await pages.press(bob, 'Upload certificate')
  }

  await step('a certificate of another name, and another key, are refused at the field; the key is not shown again', async () => {
    const made = (file, host) => openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30',
      '-subj', '/CN=brought', '-addext', `subjectAltName=DNS:${host}`, '-addext', 'basicConstraints=critical,CA:FALSE', '-keyout', inFolder(`${file}.key`), '-out', inFolder(`${file}.pem`))
    await made('mine', name)
    await made('other', `bank.${zone}`)
    const read = file => readFileSync(inFolder(file), 'utf8')
    await upload(read('other.pem'), read('other.key'))
    assert.match(await pages.errorAt(bob, 'chain').textContent(), new RegExp(`get one for ${name}`))
    assert.ok(!(await bob.page.content()).includes('PRIVATE KEY-----\n'), 'a key is never shown')
    await upload(read('mine.pem'), read('other.key'))
    assert.match(await pages.errorAt(bob, 'private_key').textContent(), /not the certificate.s/)
    assert.equal(await bob.page.getByLabel('Certificates', { exact: true }).inputValue().then(text => text.includes('BEGIN CERTIFICATE')), true, 'what was typed stays')
    assert.equal(await bob.page.getByLabel('Private key', { exact: true }).inputValue(), '')

    await upload(read('mine.pem'), read('mine.key'))
    const own = (await openssl('x509', '-in', inFolder('mine.pem'), '-noout', '-serial')).trim()
    await until('it to be served', async () => (await serial()) === own)
    assert.equal(status(await curl(`https://${name}/`, { authority: inFolder('mine.pem') })), 200)
    const page = (await bob.read(place)).html
    assert.match(page, /upload the next one before it ends/)
    assert.doesNotMatch(page, /Renew certificate now/)
  })

  await step('operators see which ends first', async () => {
    await alice.page.goto('/certificates')
    const row = alice.page.locator('tr').filter({ hasText: name })
    assert.match(await row.textContent(), /brought/)
    assert.equal((await bob.read('/certificates')).status, 403)
  })

  await step('taken away, the name has one of Corpus again', async () => {
    await bob.page.goto(place)
    await pages.confirmIn(bob, bob.page.locator('#upload details.confirm'))
    await until('the root to vouch for it', async () => status(await curl(`https://${name}/`)) === 200)
  })

  await step('others see nothing of it', async () => {
    assert.equal((await dave.read(place)).status, 404)
    const id = place.split('/').at(-1)
    assert.equal((await dave.read(`/api/v1/names/${id}/certificate`)).status, 404)
    const keys = await lab.onNode(NODE, 'stat -c %a:%U /etc/corpus/certificates')
    assert.match(keys, /^700:root/)
  })

  await step('detached, its key is named by nothing on the node', async () => {
    await pages.detach(bob, guest, name)
    await pages.nameIs(bob, guest, name, null, { limit: 60_000 })
    assert.equal((await lab.onNode(NODE, `cat /etc/corpus/certificates.list`)).includes(name), false)
    assert.equal((await bob.read(place)).status, 404)
  })
})
