// Who reaches whom: a web server its database and nothing else, the world a published port and no other, and it ends with
// the rule. By pages without a word of JSON, and once by the command line.
import assert from 'node:assert/strict'
import { createConnection } from 'node:net'
import { createSocket } from 'node:dgram'
import path from 'node:path'
import test from 'node:test'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const NODE = 'node1'
const address = lab.lab.nodes[NODE]
const [web, db] = ['web.firewall.test', 'db.firewall.test']

/** Whether a TCP port of the node answers. */
const tcp = port => new Promise(resolve => {
  const socket = createConnection({ host: address, port, timeout: 2000 })
  const end = answer => { socket.destroy(); resolve(answer) }
  socket.on('connect', () => end(true)).on('error', () => end(false)).on('timeout', () => end(false))
})

/** Whether something answers a datagram. */
const udp = port => new Promise(resolve => {
  const socket = createSocket('udp4')
  const end = answer => { clearTimeout(timer); socket.close(); resolve(answer) }
  const timer = setTimeout(() => end(false), 2000)
  socket.on('message', () => end(true)).on('error', () => end(false))
  socket.send('x', port, address)
})

test('guests are reached by rules, and by nothing else', async t => {
  await lab.cleanLab()
  const server = await Server.start('firewall')
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
  })
  const step = story(t, visitors, server)
  const guests = {}
  let alice, bob, carol, key, node

  const enters = async login => {
    const visitor = await Visitor.open(browser, server)
    visitors.push(visitor)
    await visitor.enter(login, lab.lab.password)
    return visitor
  }
  const inside = (guest, command) => lab.pasted(guests[guest].ssh, key.path, command)
  const reaches = (guest, place) => inside(guest, `timeout 2 bash -c '</dev/tcp/${place}'`).then(() => true, () => false)
  const form = (visitor, id) => visitor.page.locator(`#${id}`)
  const allow = async (visitor, { from, ports, protocol = 'tcp' }) => {
    const card = form(visitor, 'allow')
    await card.getByLabel('From', { exact: true }).fill(from)
    await card.getByLabel('Ports', { exact: true }).fill(ports)
    await card.getByLabel('Protocol', { exact: true }).selectOption(protocol)
    await pages.sends(visitor, card.getByRole('button'))
  }
  const inForce = (visitor, place, text) => until(`${text} in force at ${place}`, async () => {
    const { html } = await visitor.read(place)
    return html.split('<tr').some(row => row.includes(text) && row.includes('>In force<'))
  }, { pause: 100 })
  const gone = (visitor, place, text) => until(`${text} gone from ${place}`, async () => !(await visitor.read(place)).html.includes(text), { pause: 100 })

  await step('two guests of a project on a node', async () => {
    alice = await enters('alice')
    node = await pages.readyNode(alice, NODE)
    bob = await enters('bob')
    carol = await enters('carol')
    key = await lab.makeKey(path.join(server.folder, 'bob'))
    await pages.addKey(bob, key.line)
    for (const name of [web, db]) {
      const place = await pages.requestGuest(bob, { name, project: 'atlas', environment: 'dev', size: 'xxsmall' })
      await pages.untilStatus(bob, place, 'Running')
      const { html } = await bob.read(place)
      guests[name] = { place, ssh: pages.valueIn(html, 'ssh'), ip: pages.valueIn(html, 'ip').split('/')[0] }
    }
    await inside(db, "sudo systemd-run -q python3 -m http.server 5432; sudo systemd-run -q python3 -c \"import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);s.bind(('',5353))\nwhile True: s.sendto(*s.recvfrom(99))\"; timeout 30 sh -c 'until ss -ltn | grep -q :5432; do sleep 0.2; done'")
    assert.equal(await reaches(web, `${guests[db].ip}/5432`), false, 'a neighbour is reached without a rule')
  })

  await step('the web server reaches its database, and no other port', async () => {
    const place = `${guests[db].place}/firewall`
    await bob.page.goto(place)
    await allow(bob, { from: guests[web].ip, ports: '5432' })
    assert.match(await form(bob, 'f-allow-from-error').innerText(), /name a guest/)
    assert.equal(await form(bob, 'allow').getByLabel('Ports', { exact: true }).inputValue(), '5432', 'what was typed stays')
    await allow(bob, { from: `guest:${web}`, ports: '5432' })
    await inForce(bob, place, `5432/tcp from guest:${web}`)
    // Who was refused a moment ago may wait for its own question for the neighbour (ARP) to fail once more.
    await until('the web server to reach its database', () => reaches(web, `${guests[db].ip}/5432`), { limit: 5_000 })
    assert.equal(await reaches(web, `${guests[db].ip}/22`), false)
    await until('the drop to be told', async () => /22\/tcp/.test((await bob.read(place)).html), { pause: 500 })
    await until('packets to be counted', async () => /packets, /.test((await bob.read(place)).html), { pause: 500 })
    await bob.page.goto(place)
    await bob.screenshot('firewall-guest')
  })

  await step('a published port is reached from outside, by TCP and UDP', async () => {
    const place = `${guests[db].place}/firewall`
    for (const [port, protocol, node_port] of [['5432', 'tcp', '30010'], ['5353', 'udp', '30010']]) {
      await bob.page.goto(place)
      const card = form(bob, 'publish')
      await card.getByLabel('Port of the guest', { exact: true }).fill(port)
      await card.getByLabel('Protocol', { exact: true }).selectOption(protocol)
      await card.getByLabel('Port of the node', { exact: true }).fill('40000')
      await pages.sends(bob, card.getByRole('button'))
      assert.match(await form(bob, 'f-publish-node_port-error').innerText(), /SSH of guests/)
      await form(bob, 'publish').getByLabel('Port of the node', { exact: true }).fill(node_port)
      await pages.sends(bob, form(bob, 'publish').getByRole('button'))
      await inForce(bob, place, `Port ${node_port}/${protocol} of the node`)
    }
    assert.equal(await tcp(30010), true)
    assert.equal(await udp(30010), true)
  })

  await step('others see it or not, and change nothing', async () => {
    await carol.page.goto(`${guests[db].place}/firewall`)
    assert.equal(await form(carol, 'allow').count(), 0, 'a developer makes no rules')
    const refused = await carol.context.request.post(`${guests[db].place}/ports`, { form: { port: '22', protocol: 'tcp' }, headers: { origin: server.url }, maxRedirects: 0 })
    assert.equal(refused.status(), 403)
    assert.equal((await bob.read('/networks')).status, 403)
  })

  await step('operators see the node, name a network and keep an address out', async () => {
    await alice.page.goto(`${node}/firewall`)
    assert.match(await form(alice, 'published').innerText(), /30010\/udp/)
    await alice.page.goto('/networks')
    const card = form(alice, 'network')
    await card.getByLabel('Name', { exact: true }).fill('office')
    await card.getByLabel('Addresses', { exact: true }).fill('198.51.100.0/24')
    await pages.sends(alice, card.getByRole('button'))
    await form(alice, 'block').getByLabel('From', { exact: true }).fill('network:office')
    await pages.sends(alice, form(alice, 'block').getByRole('button'))
    await inForce(alice, '/networks', 'network:office is kept out')
    assert.match((await bob.read(`${guests[db].place}/firewall`)).html, /network:office is kept out/)
    const rules = await lab.onNode(NODE, 'nft list chain inet corpus to_guests')
    assert.match(rules, /198\.51\.100\.0\/24/)
    await alice.screenshot('firewall-networks')
  })

  await step('it ends with the rule', async () => {
    const place = `${guests[db].place}/firewall`
    for (const text of ['30010/tcp', '30010/udp', `from guest:${web}`]) {
      await bob.page.goto(place)
      await pages.confirmIn(bob, bob.page.locator('#rules tr').filter({ hasText: text }).first())
      await gone(bob, place, text)
    }
    assert.equal(await tcp(30010), false)
    assert.equal(await udp(30010), false)
    assert.equal(await reaches(web, `${guests[db].ip}/5432`), false)
  })

  await step('no error in the log', () => {
    assert.deepEqual(server.errors(), [])
  })
})
