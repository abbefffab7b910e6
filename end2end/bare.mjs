// The same work by the bare tools, on the same node in the same run: what Corpus is compared with.
// Each gives milliseconds. They clean up after themselves.
import http from 'node:http'
import secure, { Agent } from 'node:https'
import { lab, onNode, resolved, httpGet } from './lab.mjs'
import { run, timed, until } from './process.mjs'

const { env } = lab
const AGENT = process.env.CORPUS_AGENT_BINARY ?? new URL('../target/corpus/agent/corpus-agent-x86_64', import.meta.url).pathname
const scp = (node, from, to) =>
  run('scp', ['-q', '-i', env.CORPUS_LAB_NODE_KEY, '-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null',
    '-o', 'LogLevel=ERROR', '-o', 'KexAlgorithms=curve25519-sha256', from, `root@${lab.nodes[node]}:${to}`])

/** Read the host key, install a key, copy a program, read facts: four tools, four connections. */
export async function link(node) {
  const [ms] = await timed(async () => {
    await run('ssh-keyscan', ['-t', 'ed25519', lab.nodes[node]])
    await onNode(node, 'umask 077; cat > /root/.ssh/bare', { input: 'ssh-ed25519 AAAA bare\n' })
    await scp(node, AGENT, '/root/bare-agent')
    await onNode(node, 'uname -a; cat /etc/os-release /proc/meminfo /proc/cpuinfo; df /; ip -br address')
  })
  await onNode(node, 'rm -f /root/.ssh/bare /root/bare-agent')
  return ms
}

/** Copy the image's archive, unpack it, make a bridge, load a firewall table. */
export async function initialize(node, archive) {
  const [ms] = await timed(async () => {
    await scp(node, archive, '/var/lib/lxc/bare.tar.zst')
    await onNode(node, `set -e
      mkdir /var/lib/lxc/bare-image
      tar --zstd --numeric-owner -C /var/lib/lxc/bare-image -xpf /var/lib/lxc/bare.tar.zst
      ip link add barebr type bridge; ip address add 10.254.0.1/24 dev barebr; ip link set barebr up
      nft add table inet bare`, { timeout: 120_000 })
  })
  await onNode(node, 'ip link delete barebr; nft delete table inet bare; rm -rf /var/lib/lxc/bare-image /var/lib/lxc/bare.tar.zst')
  return ms
}

// On the node itself, so that no connection counts: overlay over Corpus's own image, a
// hand-written configuration, lxc-start, and a login with a key by the node's ssh.
const GUEST = `set -e
G=/var/lib/lxc/bare; D=$G/delta; IP=10.5.254.254
rm -rf $G; mkdir -p $G; ssh-keygen -q -t ed25519 -N "" -f $G/key
ms() { echo $(( \${EPOCHREALTIME/./} / 1000 )); }
BEGIN=$(ms)
mkdir -p $D/etc/ssh $D/root/.ssh; chmod 700 $D/root $D/root/.ssh
cp $G/key.pub $D/root/.ssh/authorized_keys; ssh-keygen -q -t ed25519 -N "" -f $D/etc/ssh/ssh_host_ed25519_key
cat > $G/config <<CONFIG
lxc.include = /usr/share/lxc/config/common.conf
lxc.uts.name = bare
lxc.rootfs.path = overlay:IMAGE:$D
lxc.net.0.type = veth
lxc.net.0.link = lxcbr1
lxc.net.0.flags = up
lxc.net.0.name = eth0
lxc.net.0.hwaddr = 00:16:3e:fe:fe:fe
lxc.net.0.ipv4.address = $IP/16
lxc.net.0.ipv4.gateway = 10.5.0.1
lxc.apparmor.profile = unconfined
CONFIG
lxc-start -n bare
for try in $(seq 500); do (exec 3<>/dev/tcp/$IP/22) 2>/dev/null && break; sleep 0.01; done
ssh -i $G/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR \\
  -o KexAlgorithms=curve25519-sha256 -o ConnectTimeout=2 root@$IP true
READY=$(ms)
lxc-stop -n bare -k; rm -rf $G
echo $((READY - BEGIN)) $(($(ms) - READY))`

/** Makes and destroys a guest three times; the medians of both. */
export async function guest(node, image) {
  const runs = []
  for (let count = 0; count < 3; count += 1) {
    const times = await onNode(node, `bash -c '${GUEST.replace('IMAGE', image).replaceAll("'", `'\\''`)}'`)
    runs.push(times.trim().split(' ').map(Number))
  }
  const median = column => runs.map(times => times[column]).sort((a, b) => a - b)[1]
  return { create: median(0), destroy: median(1) }
}

const PROXY = `global
  daemon
defaults
  mode http
  timeout connect 2s
  timeout client 5s
  timeout server 5s
frontend bare
  bind :8099
  use_backend %[req.hdr(host),field(1,:),lower,map(/root/bare.map,none)]
backend none
  http-request return status 404
backend guest
  server guest ADDRESS:80
`

/** A record by PowerDNS's API, a line in the proxy's map, a reload, until the name answers over HTTP. */
export async function attach(node, name, guestAddress) {
  const zone = name.split('.').slice(1).join('.')
  const reload = 'haproxy -D -f /root/bare.cfg -p /root/bare.pid -sf $(cat /root/bare.pid 2>/dev/null)'
  await onNode(node, 'cat > /root/bare.cfg; : > /root/bare.map', { input: PROXY.replace('ADDRESS', guestAddress) })
  await onNode(node, reload)
  const [ms] = await timed(async () => {
    await record(zone, name, 'REPLACE', [{ content: lab.nodes[node], disabled: false }])
    await onNode(node, `echo "${name} guest" >> /root/bare.map; ${reload}`)
    await until(name, async () => {
      const [address] = await resolved(name)
      return address && (await httpGet(address, name, { port: 8099 })).status === 200
    }, { pause: 10 })
  })
  await record(zone, name, 'DELETE', [])
  await onNode(node, 'kill $(cat /root/bare.pid); rm -f /root/bare.*')
  return ms
}

function record(zone, name, changetype, records) {
  const body = JSON.stringify({ rrsets: [{ name: `${name}.`, type: 'A', ttl: 60, changetype, records }] })
  const url = new URL(`/api/v1/servers/localhost/zones/${zone}.`, env.CORPUS_LAB_DNS_API)
  return new Promise((resolve, reject) => {
    const headers = { 'X-API-Key': env.CORPUS_LAB_DNS_API_KEY, 'Content-Type': 'application/json' }
    const request = http.request(url, { method: 'PATCH', headers }, answer => {
      answer.resume()
      answer.on('end', () => (answer.statusCode === 204 ? resolve() : reject(new Error(`PowerDNS answered ${answer.statusCode}`))))
    })
    request.on('error', reject)
    request.end(body)
  })
}


const TLS = `global
  daemon
defaults
  mode http
  timeout connect 2s
  timeout client 5s
  timeout server 5s
frontend bare
  bind :8444 ssl crt /root/bare.pem ssl-min-ver TLSv1.2 alpn h2,http/1.1
  default_backend guest
backend guest
  server guest ADDRESS:80
`

/**
 * A site by the node's proxy and by a plain haproxy with the same certificate, in turns, so that what else the machine
 * does meets both: `{ fresh, kept }` of `{ corpus, bare }`, each the sorted milliseconds of requests that come with a
 * handshake of their own, and of those on a connection that stays.
 */
export async function https(node, name, guestAddress, ca, { rounds = 300 } = {}) {
  await onNode(node, `umask 077; cat > /root/bare.cfg; cat "$(grep -wF -- ${name} /etc/corpus/certificates.list | cut -d' ' -f1 | head -n 1)" > /root/bare.pem
    haproxy -D -f /root/bare.cfg -p /root/bare.pid`, { input: TLS.replace('ADDRESS', guestAddress) })
  const ports = { corpus: 443, bare: 8444 }
  const staying = Object.fromEntries(Object.keys(ports).map(of => [of, new Agent({ keepAlive: true, maxSockets: 1 })]))
  const ask = (of, agent) => httpsGet({ host: lab.nodes[node], port: ports[of], servername: name, headers: { host: name }, ca, agent })
  try {
    const times = { fresh: { corpus: [], bare: [] }, kept: { corpus: [], bare: [] } }
    for (let round = -10; round < rounds; round += 1) {
      for (const of of Object.keys(ports)) {
        for (const [how, agent] of [['fresh', false], ['kept', staying[of]]]) {
          const [ms, status] = await timed(() => ask(of, agent))
          if (status !== 200) throw new Error(`${of} answered ${status}`)
          // The first ones are not counted.
          if (round >= 0) times[how][of].push(ms)
        }
      }
    }
    for (const how of Object.values(times)) for (const list of Object.values(how)) list.sort((a, b) => a - b)
    return times
  } finally {
    for (const agent of Object.values(staying)) agent.destroy()
    await onNode(node, 'kill $(cat /root/bare.pid); rm -f /root/bare.*')
  }
}

function httpsGet(options) {
  return new Promise((resolve, reject) => {
    const request = secure.get({ ...options, timeout: 5000 }, answer => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode))
    })
    request.on('timeout', () => request.destroy(new Error('no answer in 5 s')))
    request.on('error', reject)
  })
}
