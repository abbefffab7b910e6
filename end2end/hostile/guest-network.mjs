// Root in a guest on the network: another's address, another's traffic, places that are nobody's business, and more
// connections than the node can bear.
import assert from 'node:assert/strict'
import dgram from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { NODE, OTHER, lab, run, until } from './world.mjs'

const { env, nodes } = lab.lab
const GATEWAY = '10.5.0.1'
/** An address of the internet, for the nodes of the lab: node2 has it, and node1 knows the way. */
const INTERNET = '198.51.100.7'
const METADATA = '169.254.169.254'
const PORT = 8765
/** Where the callers come from who open sockets: beside the nodes on the lab's bridge. */
const CALLERS = [101, 102, 103, 104, 105, 106, 107, 108].map(last => env.CORPUS_LAB_GATEWAY.replace(/\d+$/, String(last)))
const SOCKETS = 4100

export async function attacks(attack, world) {
  const { attacker, victim } = world
  const gatewayMac = (await lab.onNode(NODE, 'cat /sys/class/net/lxcbr1/address')).trim()
  const facts = { victim: victim.ip, victim_mac: victim.mac, own: attacker.ip, gateway: GATEWAY, gateway_mac: gatewayMac, seconds: 1.5 }
  const does = async (what, more = {}) => JSON.parse(await attacker.attack('network', { ...facts, what, ...more }))

  /** While it attacks, and a moment later, the victim's page is the victim's. */
  async function meanwhile(what) {
    const working = does(what)
    const answers = []
    for (let count = 0; count < 12; count += 1) {
      answers.push(await world.page(world.site, { timeout: 1500 }).catch(error => error.message))
      await sleep(120)
    }
    assert.ok(await working > 100, 'it did send')
    assert.deepEqual([...new Set(answers)], ['the victim'])
    await world.unharmed(3)
  }

  await attack('takes the victim\'s address by gratuitous ARP', () => meanwhile('take_address'))
  await attack('takes the victim\'s MAC', () => meanwhile('take_mac'))
  await attack('poses as the gateway', async () => {
    await meanwhile('take_gateway')
    const known = await victim.root(`ip neighbour show ${GATEWAY}`)
    assert.ok(known.includes(gatewayMac), known)
  })

  await attack('poses as a router for IPv6', async () => {
    const before = await lab.onNode(NODE, 'ip -6 route show; ip -6 -br address')
    await does('router')
    assert.equal(await lab.onNode(NODE, 'ip -6 route show; ip -6 -br address'), before)
    assert.ok(!(await victim.root('ip -6 address')).includes('2001:db8:66'), 'the victim took an address of the attacker\'s prefix')
  })

  await attack('nothing that it sends to the victim or to all arrives there', async () => {
    const hearing = victim.attack('network', { what: 'hear', seconds: 3 })
    await until('the victim to listen', () => victim.root('test -e /run/hostile-hears').then(() => true), { pause: 50 })
    await does('frames')
    assert.deepEqual(JSON.parse(await hearing), [])
  })

  await attack('sends to the internet in the name of others', async () => {
    const seen = []
    const socket = dgram.createSocket('udp4').on('message', (text, from) => seen.push(`${text} from ${from.address}`))
    await new Promise(resolve => socket.bind(0, env.CORPUS_LAB_GATEWAY, resolve))
    await does('spoof', { outside: env.CORPUS_LAB_GATEWAY, port: socket.address().port })
    socket.close()
    assert.deepEqual([...new Set(seen)], [])
  })

  await attack('reaches the internet, and neither the controller, the node, the other node nor the victim', async () => {
    // Where the nodes are reached from is where the controller is, and what is beside it.
    const controller = net.createServer(socket => socket.destroy())
    await new Promise(resolve => controller.listen(0, env.CORPUS_LAB_GATEWAY, resolve))
    const listens = `for a in ${INTERNET} ${METADATA}; do ip address replace $a/32 dev lo; systemd-run -q --unit=hostile-$a socat TCP-LISTEN:${PORT},bind=$a,fork,reuseaddr /dev/null; done`
    await lab.onNode(OTHER, listens)
    await lab.onNode(NODE, `for a in ${INTERNET} ${METADATA}; do ip route replace $a/32 via ${nodes[OTHER]}; done`)
    try {
      await until('the internet', () => lab.onNode(NODE, `socat -u OPEN:/dev/null TCP:${INTERNET}:${PORT},connect-timeout=1`).then(() => true))
      const bridge = (await lab.onNode(NODE, 'ip -6 -br address show dev lxcbr1 scope link')).match(/fe80::[0-9a-f:]+/)?.[0]
      const targets = [
        [INTERNET, PORT],
        [METADATA, PORT], [env.CORPUS_LAB_GATEWAY, controller.address().port],
        [nodes[OTHER], 22], [nodes[NODE], 22], [GATEWAY, 22], [GATEWAY, 8404], [GATEWAY, 111],
        [victim.ip, 22], [victim.ip, 80],
        ...(bridge ? [[`${bridge}%eth0`, 22]] : []),
      ]
      const reached = await does('connects', { targets, routes: [`${victim.ip}/32`] })
      assert.deepEqual(reached, [`${INTERNET}:${PORT}`])
    } finally {
      controller.close()
      await lab.onNode(NODE, `for a in ${INTERNET} ${METADATA}; do ip route del $a/32; done`)
      await lab.onNode(OTHER, `for a in ${INTERNET} ${METADATA}; do systemctl stop hostile-$a; ip address del $a/32 dev lo; done`)
    }
  })

  await attack(`${SOCKETS} open sockets to one guest leave all others as fast`, async () => {
    const bridge = (await run('ip', ['-br', 'address'])).split('\n').find(line => line.includes(`${env.CORPUS_LAB_GATEWAY}/`)).split(/[\s@]/)[0]
    for (const caller of CALLERS) await run('ip', ['address', 'replace', `${caller}/32`, 'dev', bridge])
    const sockets = []
    try {
      const alone = await quick(world)
      const port = Number(/-p (\d+)/.exec(attacker.shown)[1])
      await attacker.root('systemctl stop page')
      await attacker.root(`systemd-run -q --unit=hole python3 -c 'import asyncio
async def hole(r, w): await asyncio.sleep(60)
async def main():
    s = await asyncio.start_server(hole, "", 80, backlog=4096)
    await s.serve_forever()
asyncio.run(main())'`)
      let settled = 0
      for (let count = 0; count < SOCKETS; count += 1) {
        const http = count % 2 === 0
        const socket = net.connect({ host: nodes[NODE], port: http ? 80 : port, localAddress: CALLERS[count % CALLERS.length] })
        const settle = () => { settled += 1; socket.removeAllListeners('connect') }
        socket.once('connect', () => { if (http) socket.write(`GET / HTTP/1.1\r\nHost: ${world.evil}\r\n\r\n`); settle() })
        socket.on('error', () => {}).once('error', settle)
        socket.resume()
        sockets.push(socket)
        if (count % 256 === 255) await sleep(10)
      }
      await until('the sockets', () => settled >= SOCKETS * 0.9, { limit: 8000 }).catch(() => {})
      const beside = await quick(world)
      assert.ok(beside <= 2 * alone + 50, `half of the victim's pages take more than ${beside.toFixed(0)} ms, ${alone.toFixed(0)} ms without`)
      assert.equal((await victim.root('hostname')).trim(), victim.name)
    } finally {
      for (const socket of sockets) socket.destroy()
      for (const caller of CALLERS) await run('ip', ['address', 'delete', `${caller}/32`, 'dev', bridge])
      await until('a login to the attacker', () => attacker.root('systemctl stop hole').then(() => true))
      await attacker.serve('the attacker')
    }
  })

  await attack('the node resolves names for its guests, and for nobody else', async () => {
    const [address] = (await attacker.root(`getent ahostsv4 ${world.site}`)).split(/\s/)
    assert.equal(address, nodes[NODE], 'a name of Corpus\' own zones, asked in a guest')
    for (const server of [nodes[NODE], `${nodes[NODE]}:5353`]) {
      const resolver = new Resolver({ timeout: 700, tries: 1 })
      resolver.setServers([server])
      await assert.rejects(resolver.resolve4(world.site), `${server} is open to the world`)
    }
  })

  await attack('cannot fill the node\'s table of connections', async () => {
    const limit = Number(await lab.onNode(NODE, 'cat /proc/sys/net/netfilter/nf_conntrack_max'))
    const of = () => lab.onNode(NODE, 'cat /proc/sys/net/netfilter/nf_conntrack_count').then(Number)
    const before = await of()
    await lab.onNode(NODE, `ip route replace 198.51.100.0/24 via ${nodes[OTHER]}`)
    const sent = await does('flood', { ports: 400, addresses: 50 })
    const took = await of() - before
    await lab.onNode(NODE, 'ip route del 198.51.100.0/24')
    assert.ok(sent > 10_000, 'it did send')
    assert.ok(took < limit / 8 && took < 10_000, `20,000 packets took ${took} of ${limit} places`)
    await world.unharmed(3)
  })
}

/**
 * Within how many milliseconds half of some answers of the victim's page came, which must all be its own. The slowest
 * says more about a busy machine, and about this process with its thousands of sockets; a proxy that is full makes all
 * wait, or answers none.
 */
async function quick(world) {
  const times = []
  for (let count = 0; count < 40; count += 1) {
    const begin = performance.now()
    assert.equal(await world.page(), 'the victim')
    times.push(performance.now() - begin)
  }
  return times.sort((a, b) => a - b)[20]
}
