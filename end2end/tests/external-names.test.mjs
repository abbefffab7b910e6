// A name of a zone that others hold: the page says which records to make, which of them is missing, and takes the name once
// the world answers both. The lab's PowerDNS plays the world, with a zone that Corpus does not hold.
import assert from 'node:assert/strict'
import test from 'node:test'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const NODE = 'node1'
const address = lab.lab.nodes[NODE]
const zone = `ours.${lab.lab.zone}`
const theirs = 'elsewhere.test'
const name = `www.${theirs}`
const guestName = `site.${zone}`

const set = (of, type, content) => ({ name: `${of}.`, type, ttl: 10, changetype: 'REPLACE', records: [{ content, disabled: false }] })

test('a name from elsewhere is taken once it is proven, and watched from then on', async t => {
  await lab.cleanLab()
  await lab.removeZone(theirs)
  await lab.makeZone(theirs)
  const server = await Server.start('external-names', { dns: { resolvers: [lab.lab.env.CORPUS_LAB_DNS] } })
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
    await lab.removeZone(theirs)
  })
  const step = story(t, visitors, server)
  let alice, bob, dave, guest, claim, proof, proofName

  const enters = async login => {
    const visitor = await Visitor.open(browser, server)
    visitors.push(visitor)
    await visitor.enter(login, lab.lab.password)
    return visitor
  }
  const claims = async (visitor, place, of) => {
    await visitor.page.goto(place)
    await visitor.page.getByLabel('Name from elsewhere', { exact: true }).fill(of)
    await pages.press(visitor, 'Claim name')
  }
  const shows = words => until(`the claim to show ${words}`, async () => (await bob.read(claim)).html.includes(words))
  const asksNow = async () => {
    await bob.page.goto(claim)
    await pages.press(bob, 'Ask the world now')
  }

  await step('a guest whose node is in service', async () => {
    alice = await enters('alice')
    await pages.createZone(alice, zone)
    await pages.readyNode(alice, NODE)
    bob = await enters('bob')
    dave = await enters('dave')
    guest = await pages.requestGuest(bob, { name: guestName, project: 'atlas', environment: 'dev', size: 'xxsmall' })
    await pages.untilStatus(bob, guest, 'Running')
  })

  await step('the page says which records to make', async () => {
    await claims(bob, guest, name)
    claim = pages.here(bob)
    assert.match(claim, /^\/name-claims\/[0-9a-f-]{36}$/)
    const { html } = await bob.read(claim)
    assert.equal(pages.valueIn(html, 'target'), address)
    proof = pages.valueIn(html, 'proof')
    proofName = pages.valueIn(html, 'proof-name')
    assert.equal(proofName, `_corpus-challenge.${name}`)
    await bob.page.goto('/dns')
    assert.match(await bob.page.locator('#claims').textContent(), /neither record is seen/)
  })

  await step('names of our zones, rubbish, and a second claim are refused at the field', async () => {
    for (const [of, why] of [[`shop.${zone}`, /which is ours/], ['no name!', /full host name/], [name, /claimed for this project already/]]) {
      await claims(bob, guest, of)
      assert.match(await bob.page.locator('#main').textContent(), why, of)
    }
  })

  await step('what is missing is said, and what was answered', async () => {
    await lab.writeRecords(theirs, [set(name, 'A', '198.51.100.9')])
    await asksNow()
    await shows('198.51.100.9')
    assert.match((await bob.read(claim)).html, /Not seen yet/)
    await lab.writeRecords(theirs, [set(name, 'A', address)])
    await asksNow()
    await shows('status ok">Seen<')
    await bob.page.goto('/dns')
    assert.match(await bob.page.locator('#claims').textContent(), /its proof is missing/)
  })

  await step('the proof of another project is none', async () => {
    const stranger = await dave.read(claim)
    assert.equal(stranger.status, 404)
    await lab.writeRecords(theirs, [set(proofName, 'TXT', `"${proof.replace(/./, digit => (digit === '0' ? '1' : '0'))}"`)])
    const written = Date.now()
    await asksNow()
    await until('it to be asked', async () => Date.parse(JSON.parse((await bob.read(`/api/v1${claim}`)).html).asked_at) > written)
    assert.equal((await bob.read(claim)).status, 200)
  })

  await step('with the proof it is attached, and leads to the guest', async () => {
    await lab.writeRecords(theirs, [set(proofName, 'TXT', `"${proof}"`)])
    await asksNow()
    await pages.nameIs(bob, guest, name, 'Attached', { limit: 60_000 })
    assert.equal((await bob.read(claim)).status, 404, 'the claim is over')
    assert.match((await bob.read(guest)).html, /from elsewhere/)
    assert.notEqual((await lab.httpGet(address, name)).status, 404, 'the proxy knows it')
    const records = await lab.zoneRecords(zone)
    assert.ok(!JSON.stringify(records).includes(theirs), 'nothing of it is in a zone of ours')
  })

  await step('when the answer changes, the page says so', async () => {
    await lab.writeRecords(theirs, [set(name, 'A', '198.51.100.9')])
    await until('the page to say it', async () => (await bob.read(guest)).html.includes('world answers 198.51.100.9'), { limit: 90_000 })
    await lab.writeRecords(theirs, [set(name, 'A', address)])
    await until('it to be over', async () => !(await bob.read(guest)).html.includes('world answers 198.51.100.9'), { limit: 90_000 })
  })

  await step('detached it is free again, and nothing of theirs was touched', async () => {
    await pages.detach(bob, guest, name)
    await pages.nameIs(bob, guest, name, null, { limit: 60_000 })
    assert.deepEqual(await lab.resolved(name), [address])
    assert.equal((await lab.httpGet(address, name)).status, 404)
  })
})
