// A web server reaches its database on another node: at the port that a rule names and no other, and nobody else does. The
// guests of both have the same address, each on its own node. What the other node does not lend, nobody gets from it by its
// certificate either; and while it is away everything else goes on.
import assert from 'node:assert/strict'
import { createConnection } from 'node:net'
import path from 'node:path'
import test from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import { note, seconds } from '../measures.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const { node1, node2 } = lab.lab.nodes
const zone = 'far.test'
const guestsOf = {
  web: { project: 'atlas', node: 'node1' },
  beside: { project: 'atlas', node: 'node1' },
  stranger: { project: 'borealis', node: 'node1' },
  db: { project: 'atlas', node: 'node2' },
}
const called = name => `${name}.${zone}`
const inside = name => `${called(name)}.guest.internal`

// Says who comes, then gives back what it is sent.
const ECHO = `import socket, sys, threading
def serve(port):
    s = socket.create_server(('', port), reuse_port=False)
    while True:
        c, who = s.accept()
        threading.Thread(target=answer, args=(c, who[0]), daemon=True).start()
def answer(c, who):
    try:
        c.sendall(b'from %s\\n' % who.encode())
        while True:
            d = c.recv(1 << 18)
            if not d: return
            c.sendall(d)
    except OSError: pass
    finally: c.close()
for port in map(int, sys.argv[1:]):
    t = threading.Thread(target=serve, args=(port,)); t.start()
`
// What a client sees: one line of JSON.
const CLIENT = `import json, socket, statistics, sys, threading, time
place, port, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def opened():
    s = socket.create_connection((place, port), 8)
    s.settimeout(8)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    said = s.makefile('rb').readline().decode().strip()
    if not said: raise OSError('closed')
    return s, said
began = time.monotonic()
try:
    if what == 'reach':
        s, said = opened()
        s.sendall(b'ping'); assert s.recv(4) == b'ping'
        told = {'said': said, 'to': s.getpeername()[0]}
    elif what == 'measure':
        opening, asking = [], []
        for _ in range(60):
            t = time.monotonic(); s, _said = opened(); opening.append(time.monotonic() - t); s.close()
        s, _said = opened()
        for _ in range(300):
            t = time.monotonic(); s.sendall(b'x' * 200); n = 0
            while n < 200: n += len(s.recv(4096))
            asking.append(time.monotonic() - t)
        size, got, t = 64 << 20, 0, time.monotonic()
        sender = threading.Thread(target=lambda: s.sendall(bytes(size))); sender.start()
        while got < size: got += len(s.recv(1 << 18))
        took = time.monotonic() - t
        told = {'open_ms': statistics.median(opening) * 1000, 'ask_ms': statistics.median(asking) * 1000, 'mb_s': 2 * size / took / 1e6}
    elif what == 'hold':
        s, said = opened()
        while True:
            s.sendall(b'x')
            if not s.recv(1): raise OSError('closed')
            open('/tmp/held', 'w').write(str(time.time()))
            time.sleep(0.1)
except Exception as error:
    told = {'refused': type(error).__name__ + ': ' + str(error)}
told['s'] = time.monotonic() - began
print(json.dumps(told))
`

/** How a connection to a port of a node ends. */
const tcp = (host, port) => new Promise(resolve => {
  const socket = createConnection({ host, port, timeout: 1500 })
  const end = answer => { socket.destroy(); resolve(answer) }
  socket.on('connect', () => end('open')).on('error', error => end(error.code)).on('timeout', () => end('silent'))
})

test('guests reach guests of another node', async t => {
  await lab.cleanLab()
  const server = await Server.start('far')
  const browser = await launch()
  const visitors = []
  let isCut = false
  t.after(async () => {
    if (isCut) await lab.fault('heal', 'node2')
    await browser.close()
    await server.stop()
  })
  const step = story(t, visitors, server)
  const guests = {}
  let alice, bob, key, address, rules

  const at = (name, command, options) => lab.pasted(guests[name].ssh, key.path, command, options)
  const client = async (name, place, port, what = 'reach', timeout = 40_000) =>
    JSON.parse(await at(name, `python3 /tmp/client.py ${place} ${port} ${what}`, { timeout }))
  const reaches = async (name, place, port) => !(await client(name, place, port)).refused
  const firewall = name => `${guests[name].place}/firewall`
  const form = id => bob.page.locator(`#${id}`)
  const allow = async (name, { from, ports, protocol = 'tcp' }) => {
    await bob.page.goto(firewall(name))
    await form('allow').getByLabel('From', { exact: true }).fill(from)
    await form('allow').getByLabel('Ports', { exact: true }).fill(ports)
    await form('allow').getByLabel('Protocol', { exact: true }).selectOption(protocol)
    await pages.sends(bob, form('allow').getByRole('button'))
  }
  const inForce = (name, text) => until(`${text} in force at ${name}`, async () => {
    const { html } = await bob.read(firewall(name))
    return html.split('<tr').find(row => row.includes(text) && row.includes('>In force<'))
  }, { pause: 100 })
  const remove = async (name, text) => {
    await bob.page.goto(firewall(name))
    await pages.confirmIn(bob, bob.page.locator('#rules tr').filter({ hasText: text }).first())
    await until(`${text} gone from ${name}`, async () => !(await bob.read(firewall(name))).html.includes(text), { pause: 100 })
  }
  const held = async () => Number(await at('web', 'cat /tmp/held 2>/dev/null || echo 0'))
  /** Whether the connection that is held is spoken on within a second. */
  const isHeld = async () => {
    const before = await held()
    await sleep(700)
    return await held() > before
  }

  await step('three guests on a node, one on another', async () => {
    alice = await Visitor.open(browser, server)
    visitors.push(alice)
    await alice.enter('alice', lab.lab.password)
    const nodes = {}
    for (const node of ['node1', 'node2']) nodes[node] = (await pages.readyNode(alice, node)).split('/').at(-1)
    // Their project is there once somebody of it is.
    const dave = await Visitor.open(browser, server)
    visitors.push(dave)
    await dave.enter('dave', lab.lab.password)
    bob = await Visitor.open(browser, server)
    visitors.push(bob)
    await bob.enter('bob', lab.lab.password)
    const joined = await alice.context.request.post('/projects/borealis/members', { form: { login: 'bob', role: 'maintainer' }, headers: { origin: server.url }, maxRedirects: 0 })
    assert.equal(joined.status(), 303)
    key = await lab.makeKey(path.join(server.folder, 'bob'))
    await pages.addKey(bob, key.line)
    for (const [name, { project, node }] of Object.entries(guestsOf)) {
      guests[name] = { place: await pages.requestGuest(bob, { name: called(name), project, environment: 'dev', size: 'xxsmall', node: nodes[node] }) }
    }
    await Promise.all(Object.keys(guests).map(async name => {
      await pages.untilStatus(bob, guests[name].place, 'Running', { limit: 120_000 })
      const { html } = await bob.read(guests[name].place)
      Object.assign(guests[name], { ssh: pages.valueIn(html, 'ssh'), ip: pages.valueIn(html, 'ip').split('/')[0] })
      await at(name, 'cat > /tmp/client.py', { input: CLIENT })
      await at(name, 'cat > /tmp/echo.py', { input: ECHO })
    }))
    for (const name of ['db', 'beside']) await at(name, 'sudo systemd-run -q python3 /tmp/echo.py 5432 5433')
    assert.equal(guests.web.ip, guests.db.ip, 'both nodes have the same network')
  })

  await step('what can never come is refused', async () => {
    await allow('db', { from: `guest:${called('web')}`, ports: '53', protocol: 'udp' })
    assert.match(await form('f-allow-protocol-error').innerText(), /by TCP only/)
    await allow('db', { from: `guest:${called('web')}`, ports: '5000-6000' })
    assert.match(await form('f-allow-ports-error').innerText(), /16 ports at most/)
  })

  await step('the web server reaches its database, at its port only, by its name and by its address', async () => {
    await allow('db', { from: `guest:${called('web')}`, ports: '5432' })
    const row = await inForce('db', `5432/tcp from guest:${called('web')}`)
    address = /198\.18\.\d+\.\d+/.exec(row)?.[0]
    assert.ok(address && row.includes(`${inside('db')}: ${address} from other nodes`), row)
    const told = await client('web', inside('db'), 5432)
    assert.deepEqual([told.said, told.to], ['from 10.5.0.1', address], JSON.stringify(told))
    assert.equal(await reaches('web', address, 5432), true)
    assert.match((await client('web', inside('db'), 5433)).refused, /OSError|unreachable/i)
    assert.equal(await reaches('web', address, 22), false)
    await until('packets to be counted', async () => /packets, /.test((await bob.read(firewall('db'))).html), { pause: 500 })
    await bob.page.goto(firewall('db'))
    await bob.screenshot('far-firewall')
  })

  await step('nobody else does, and nobody else is told the name', async () => {
    for (const name of ['beside', 'stranger']) {
      assert.match((await client(name, inside('db'), 5432)).refused, /gaierror/, name)
      assert.equal(await reaches(name, address, 5432), false, name)
      assert.equal(await reaches(name, '10.5.0.1', 7445), false, name)
    }
    // An address of the node of another guest does not help, nor the proxy itself.
    assert.equal(await reaches('web', '10.5.0.1', 7445), false)
    assert.equal(await reaches('web', node2, 7444), false)
    for (const port of [7444, 7445]) {
      for (const node of [node1, node2]) assert.notEqual(await tcp(node, port), 'open', `${node}:${port}`)
    }
  })

  await step('a node that was taken over gets nothing but what was lent to it', async () => {
    const asks = async (label, { certificate = true } = {}) => lab.onNode('node1', `
      file=$(grep -o '/etc/corpus/certificates/[^ ]*.pem' /etc/corpus/haproxy.cfg | head -1)
      echo ping | timeout 3 openssl s_client -quiet -connect ${node2}:7444 -servername ${label} ${certificate ? '-cert $file -key $file' : ''} 2>/dev/null | head -c 40 | tr -d '\\0'; true`)
    const lent = (await lab.onNode('node2', 'cat /etc/corpus/far.map')).trim().split('\n')
    assert.equal(lent.length, 1, lent.join())
    const [, name] = /^\S+\/(\S+) 10\.5\.0\.\d+:5432$/.exec(lent[0])
    assert.match(await asks(name), /^from 10\.5\.0\.1/, 'what was lent')
    assert.equal(await asks(name, { certificate: false }), '')
    const own = name.split('.').slice(1).join('.')
    const labels = await lab.onNode('node2', `for what in ${called('db')}:5433 ${called('db')}:22 ${called('db')}; do printf '%s' $what | sha256sum | cut -c1-32; done`)
    for (const label of labels.trim().split('\n')) assert.equal(await asks(`${label}.${own}`), '', label)
    assert.equal(await asks(own), '')
    // The proxy of the other node itself comes to no other port of its guests: the kernel holds it.
    const asProxy = port => lab.onNode('node2', `setpriv --reuid=haproxy --regid=haproxy --clear-groups timeout 2 bash -c '</dev/tcp/${guests.db.ip}/${port}'`).then(() => true, () => false)
    assert.deepEqual([await asProxy(5432), await asProxy(5433)], [true, false])
  })

  await step('a connection outlasts a reload of both proxies, and ends with the rule', async () => {
    await at('web', `sudo systemd-run -q python3 /tmp/client.py ${inside('db')} 5432 hold`)
    await until('the connection to be held', async () => await held() > 0, { limit: 10_000, pause: 200 })
    for (const node of ['node1', 'node2']) await lab.onNode(node, 'systemctl reload corpus-proxy.service')
    await sleep(500)
    assert.equal(await isHeld(), true, 'a reload cut it')
    assert.equal(await reaches('web', inside('db'), 5432), true)
    const began = performance.now()
    await remove('db', `5432/tcp from guest:${called('web')}`)
    assert.equal(await isHeld(), false, 'it goes on without the rule')
    rules = seconds(performance.now() - began)
    assert.equal(await reaches('web', address, 5432), false)
    for (const node of ['node1', 'node2']) assert.doesNotMatch(await lab.onNode(node, 'cat /etc/corpus/haproxy.cfg'), /frontend (ways|far)/)
  })

  await step('a rule of the environment holds for both, near and far', async () => {
    await allow('db', { from: 'environment:dev', ports: '5432-5433' })
    await inForce('db', '5432-5433/tcp from environment:dev')
    await allow('beside', { from: `guest:${called('web')}`, ports: '5432' })
    await inForce('beside', `5432/tcp from guest:${called('web')}`)
    assert.equal(await reaches('web', inside('db'), 5433), true)
    assert.equal(await reaches('beside', inside('db'), 5432), true)
    assert.equal(await reaches('stranger', address, 5432), false)
    assert.equal((await client('web', inside('beside'), 5432)).to, guests.beside.ip, 'near it is the guest itself')
    const near = await client('web', inside('beside'), 5432, 'measure', 90_000)
    const far = await client('web', inside('db'), 5432, 'measure', 90_000)
    assert.ok(!near.refused && !far.refused, JSON.stringify({ near, far }))
    const told = ({ open_ms, ask_ms, mb_s }) => `opened in ${open_ms.toFixed(1)} ms, 200 bytes there and back in ${ask_ms.toFixed(2)} ms, ${Math.round(mb_s)} MB/s both ways together`
    note('A guest to a guest by TCP, medians', [['on one node', told(near)], ['on two nodes', told(far)], ['a rule between nodes removed, nothing passes', rules]])
    console.log(`# near: ${told(near)}; far: ${told(far)}`)
  })

  await step('while the other node is away it is said soon, everything else goes on, and it works again', async () => {
    isCut = true
    await lab.fault('cut', 'node2')
    const told = await client('web', inside('db'), 5432)
    assert.ok(told.refused && told.s < 8, JSON.stringify(told))
    assert.equal(await reaches('web', inside('beside'), 5432), true)
    await lab.fault('heal', 'node2')
    isCut = false
    await until('the database to be reached again', () => reaches('web', inside('db'), 5432), { limit: 20_000, pause: 300 })
  })

  await step('a guest that goes leaves no way to it', async () => {
    await pages.destroy(bob, guests.db.place, called('db'))
    await until('the way to be gone', async () => (await lab.onNode('node1', 'nft list table inet corpus')).includes(address) === false, { limit: 60_000, pause: 300 })
    assert.match((await client('web', inside('db'), 5432)).refused, /gaierror/)
  })

  await step('no error in the log', () => {
    assert.deepEqual(server.errors(), [])
  })
})
