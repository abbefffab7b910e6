// Certificates of a directory (ACME): a name that is attached is served by HTTPS with one soon; a name that the directory
// can't see says why on its page, and "Try certificate now" mends it; wildcards are proven in their zone.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import test from 'node:test'
import { Directory } from '../acme.mjs'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import * as pages from '../pages.mjs'
import { run, succeeds, until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const NODE = 'node1'
const address = lab.lab.nodes[NODE]
const zone = `acme.${lab.lab.zone}`
const guestName = `web.${zone}`
const name = `shop.${zone}`
const unseen = `unseen.${zone}`

test('certificates of a directory', async t => {
  await lab.cleanLab()
  const directory = await Directory.start()
  const server = await Server.start('acme', { certificates: directory.settings })
  const browser = await launch([])
  const folder = mkdtempSync(path.join(os.tmpdir(), 'corpus-acme-'))
  const visitors = []
  t.after(async () => {
    await lab.onNode(NODE, 'nft delete table inet trial').catch(() => {})
    await browser.close()
    await server.stop()
    await directory.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const step = story(t, visitors, server)
  const root = path.join(folder, 'root.pem')
  writeFileSync(root, await directory.root())
  let alice, bob, guest

  const enters = async login => {
    const visitor = await Visitor.open(browser, server)
    visitors.push(visitor)
    await visitor.enter(login, lab.lab.password)
    return visitor
  }
  const https = host => ['-sS', '-o', '/dev/null', '--noproxy', '*', '-m', '5', '--cacert', root, '--resolve', `${host}:443:${address}`, `https://${host}/`]
  const placeOf = async host => {
    const { html } = await bob.read(guest)
    const row = html.split(/<tr\b|<li\b/).find(part => part.includes(`>${host}<`))
    return /href="(\/names\/[0-9a-f-]{36})"/.exec(row ?? '')?.[1]
  }

  await step('a guest', async () => {
    alice = await enters('alice')
    await pages.createZone(alice, zone)
    await pages.readyNode(alice, NODE)
    bob = await enters('bob')
    guest = await pages.requestGuest(bob, { name: guestName, project: 'atlas', environment: 'dev', size: 'xxsmall' })
    await pages.untilStatus(bob, guest, 'Running')
  })

  await step('an attached name is served with a certificate of the directory soon', async () => {
    await bob.page.goto(guest)
    const begin = performance.now()
    await pages.attach(bob, guest, name)
    await until('HTTPS that the root is good for', () => succeeds('curl', https(name)), { limit: 60_000, pause: 20 })
    const elapsed = Math.round(performance.now() - begin)
    t.diagnostic(`from the form to the first answer by HTTPS: ${elapsed} ms`)
    assert.ok(elapsed < 20_000, `${elapsed} ms`)
    const place = await until('the page of the name', () => placeOf(name))
    await until('it to be shown', async () => />Served</.test((await bob.read(place)).html))
    assert.match((await bob.read(place)).html, /a directory, by ACME/)
    const left = await run('curl', ['-s', '-o', '/dev/null', '-w', '%{http_code}', '--noproxy', '*', '-m', '5', '--resolve', `${name}:80:${address}`, `http://${name}/.well-known/acme-challenge/x`])
    assert.notEqual(left, '200', 'nothing is answered any more that proves the name')
  })

  await step('a name that the directory can not see says why, and is mended', async () => {
    await lab.onNode(NODE, 'nft add table inet trial && nft add chain inet trial in "{ type filter hook input priority -300; }" && nft add rule inet trial in tcp dport 80 reject with tcp reset')
    await pages.attach(bob, guest, unseen)
    const place = await until('the page of the name', () => placeOf(unseen))
    const page = await until('the failure', async () => {
      const { html } = await bob.read(place)
      return /The last try to get a certificate failed/.test(html) && html
    }, { limit: 120_000 })
    assert.ok(page.includes(unseen) && /port 80 of the node is open from outside/.test(page), 'it says what to do')
    assert.match(page, /tried again by itself/)
    assert.ok(!(await succeeds('curl', https(unseen))), 'there is no certificate for it')
    assert.ok(await succeeds('curl', https(name)), 'the other name is served')
    await lab.onNode(NODE, 'nft delete table inet trial')
    await bob.page.goto(place)
    await pages.press(bob, 'Try certificate now')
    await until('HTTPS', () => succeeds('curl', https(unseen)), { limit: 60_000 })
    await until('it to be shown', async () => />Served</.test((await bob.read(place)).html))
  })

  await step('a directory that is down is told, and what is served stays', async () => {
    const place = await placeOf(name)
    await directory.down()
    await bob.page.goto(place)
    await pages.press(bob, 'Renew certificate now')
    await until('the failure', async () => /can.t be reached/.test((await bob.read(place)).html), { limit: 120_000 })
    assert.ok(await succeeds('curl', https(name)), 'the one before is served')
  })
})
