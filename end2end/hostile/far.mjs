// Between nodes: who has guests of their own on two nodes, root in both, and one of the nodes as well, gets to nobody else's
// guests by the ways that Corpus made for them.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { NODE, OTHER, lab, pages, until, zone } from './world.mjs'

const { nodes } = lab.lab
const GATEWAY = '10.5.0.1'
const label = what => createHash('sha256').update(what).digest('hex').slice(0, 32)

export async function attacks(attack, world) {
  const { attacker, mallory, victim, other } = world
  // Each way round one port: theirs on the other node reaches the attacker's guest, and the attacker's guest theirs.
  const second = await world.requested(mallory, { name: `second.${zone}`, project: 'borealis', environment: 'dev', size: 'xxsmall', node: other.split('/').at(-1) })
  await second.ready()
  const page = guest => `${guest.place}/firewall`
  const allowed = async (to, from) => {
    const answer = await mallory.post(page(to), { from: `guest:${from.name}`, protocol: 'tcp', ports: '8080' })
    assert.equal(answer.status, 303, pages.errorsIn(answer.html))
    return until('the rule to be in force', async () => {
      const { html } = await mallory.get(page(to))
      return html.includes('>In force<') && html
    }, { pause: 100 })
  }
  await allowed(attacker, second)
  const address = /198\.18\.\d+\.\d+/.exec(await allowed(second, attacker))[0]
  for (const guest of [attacker, second]) await guest.root('systemd-run -q --unit=far --working-directory=/tmp python3 -m http.server 8080')
  const reaches = (guest, host, port) => guest.root(`timeout 2 bash -c '</dev/tcp/${host}/${port}'`).then(() => true, () => false)
  await until('the way to be there', () => reaches(attacker, address, 8080), { pause: 200 })

  await attack('root in a guest comes by the way between nodes to nothing but the port that was lent', async () => {
    const [a, b, c, last] = address.split('.').map(Number)
    const places = [[address, 22], [address, 80], [address, 8081], [`${a}.${b}.${c}.${last + 1}`, 8080], [GATEWAY, 7444], [GATEWAY, 7445], [nodes[NODE], 7444], [nodes[OTHER], 7444], [nodes[OTHER], 7445]]
    const open = []
    for (const [host, port] of places) if (await reaches(attacker, host, port)) open.push(`${host}:${port}`)
    assert.deepEqual(open, [])
    // A way that is there is the attacker's own: nobody else's guest goes it.
    assert.equal(await reaches(victim, address, 8080), false)
  })

  await attack('root in a guest asks for the names of others, and is told of none', async () => {
    const asks = (guest, name) => guest.root(`getent hosts ${name}.guest.internal`).then(text => text.trim(), () => '')
    assert.match(await asks(attacker, second.name), new RegExp(`^${address.replaceAll('.', '\\.')} `))
    assert.equal(await asks(attacker, victim.name), '')
    for (const name of [attacker.name, second.name, victim.name]) assert.equal(await asks(victim, name), '', name)
  })

  await attack('root on a node asks another one for guests that were not lent to it, with its own certificate', async () => {
    const own = (await lab.onNode(NODE, "sed -n 's/^[^/]*\\/[0-9a-f]*\\.\\(.*\\) .*/\\1/p' /etc/corpus/far.map | head -1")).trim()
    assert.match(own, /\.node\.internal$/)
    const asks = async (what, certificate) => {
      const show = certificate ? '-cert $file -key $file' : ''
      const script = `file=$(grep -o '/etc/corpus/certificates/[^ ]*.pem' /etc/corpus/haproxy.cfg | head -1)
        printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 3 openssl s_client -quiet -connect ${nodes[NODE]}:7444 -servername ${what} ${show} 2>/dev/null | head -c 20 | tr -d '\\0'; true`
      return (await lab.onNode(OTHER, script)).trim()
    }
    assert.match(await asks(`${label(`${attacker.name}:8080`)}.${own}`, true), /^HTTP/, 'what was lent to it')
    const got = []
    for (const what of [`${victim.name}:80`, `${victim.name}:22`, victim.name, `${attacker.name}:22`, `${attacker.name}:80`, attacker.name, '10.5.0.10:80', `${victim.ip}:80`]) {
      for (const asked of [`${label(what)}.${own}`, `${label(what).toUpperCase()}.${own}`]) if (await asks(asked, true)) got.push(what)
    }
    for (const asked of [own, `${label(`${attacker.name}:8080`)}.x`, 'x', `${label(`${attacker.name}:8080`)}.${own}/../x`]) if (await asks(asked, true)) got.push(asked)
    if (await asks(`${label(`${attacker.name}:8080`)}.${own}`, false)) got.push('without a certificate')
    assert.deepEqual(got, [])
  })

  await attack('what the proxy of a node holds open to a guest ends with the rule, whoever holds it at the other end', async () => {
    const held = 'systemd-run -q --unit=hold sh -c "while :; do echo x; sleep 0.2; done | openssl s_client'
    const file = (await lab.onNode(OTHER, "grep -o '/etc/corpus/certificates/[^ ]*.pem' /etc/corpus/haproxy.cfg | head -1")).trim()
    const own = (await lab.onNode(NODE, "sed -n 's/^[^/]*\\/[0-9a-f]*\\.\\(.*\\) .*/\\1/p' /etc/corpus/far.map | head -1")).trim()
    await attacker.root('systemctl stop far')
    await attacker.root(`systemd-run -q --unit=far python3 -c "
import socket, time
s = socket.create_server(('', 8080)); c, _ = s.accept()
while c.recv(100): open('/tmp/heard', 'w').write(str(time.time()))"`)
    await until('it to listen', () => attacker.root('ss -ltn').then(text => text.includes(':8080')), { pause: 100 })
    // A copy of the certificate stays with who took over the node.
    await lab.onNode(OTHER, `cp ${file} /root/kept.pem; ${held} -quiet -connect ${nodes[NODE]}:7444 -servername ${label(`${attacker.name}:8080`)}.${own} -cert /root/kept.pem -key /root/kept.pem"`)
    const heard = async () => (await attacker.root('cat /tmp/heard').catch(() => '')).trim()
    await until('the guest to hear of it', async () => await heard() !== '', { limit: 5000, pause: 100 })
    const { html } = await mallory.get(page(attacker))
    const rule = /\/firewall-rules\/([0-9a-f-]{36})/.exec(html)[1]
    assert.equal((await mallory.post(`/firewall-rules/${rule}/delete`, { confirm: '1' })).status, 303)
    await until('the rule to be gone', async () => !(await mallory.get(page(attacker))).html.includes(`from guest:${second.name}`), { pause: 100 })
    const last = await heard()
    await new Promise(then => setTimeout(then, 1000))
    assert.equal(await heard(), last, 'the guest hears it still')
    await lab.onNode(OTHER, 'systemctl stop hold; rm -f /root/kept.pem; true')
  })

  await mallory.post(`${second.place}/delete`, { _name: second.name, confirm: second.name })
  await until('the second guest to be gone', async () => (await mallory.get(second.place)).status === 404, { limit: 60_000, pause: 300 })
}
