// The lab's facts, from the environment (`lab env`, as scripts/test sets it) or from the lab
// itself, and what tests do to it: commands on nodes, questions to its DNS, faults.
import { execFileSync } from 'node:child_process'
import { Resolver } from 'node:dns/promises'
import { readFile, rm } from 'node:fs/promises'
import http from 'node:http'
import { fileURLToPath } from 'node:url'
import { PATIENCE, run, until } from './process.mjs'

const askpass = fileURLToPath(new URL('askpass', import.meta.url))
const program = fileURLToPath(new URL('lab/lab', import.meta.url))

function facts() {
  if (process.env.CORPUS_LAB_NODE1) return process.env
  const lines = execFileSync(program, ['env'], { encoding: 'utf8' }).trim().split('\n')
  return Object.fromEntries(lines.map(line => /^(\w+)="?(.*?)"?$/.exec(line).slice(1)))
}

const env = facts()

export const lab = {
  name: env.CORPUS_LAB_NAME,
  nodes: { node1: env.CORPUS_LAB_NODE1, node2: env.CORPUS_LAB_NODE2 },
  nodePassword: env.CORPUS_LAB_NODE_PASSWORD,
  password: env.CORPUS_LAB_LDAP_PASSWORD,
  zone: env.CORPUS_LAB_DNS_ZONE,
  env,
  /** An address of the lab's network at which nothing is. */
  nowhere: env.CORPUS_LAB_NODE1.replace(/\d+$/, '99'),
}

const batch = ['-o', 'BatchMode=yes']
const quick = ['-o', 'LogLevel=ERROR', '-o', 'ConnectTimeout=10', '-o', 'IdentitiesOnly=yes',
  '-o', 'KexAlgorithms=curve25519-sha256']
const anyHostKey = ['-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null']

/** A shell command on a node, as root, by the lab's own key: not Corpus's way. */
export function onNode(node, command, options) {
  const args = ['-i', env.CORPUS_LAB_NODE_KEY, ...batch, ...quick, ...anyHostKey, `root@${lab.nodes[node]}`, command]
  return run('ssh', args, options)
}

/** The fingerprints of a node's host keys as ssh-keygen prints them on the node itself. */
export async function fingerprints(node) {
  const listed = await onNode(node, 'for key in /etc/ssh/ssh_host_*_key.pub; do ssh-keygen -lf "$key"; done')
  return listed.match(/SHA256:\S+/g)
}

/**
 * Runs the ssh command that a page shows, with a key of the test, and adds `command` to it.
 * The guest's host key must be the one with `fingerprint` if that is given.
 */
export function pasted(shown, key, command = 'true', { knownHosts = '/dev/null', timeout = 20_000, input } = {}) {
  const [program, ...args] = shown.trim().split(/\s+/)
  if (program !== 'ssh') throw new Error(`the page shows no ssh command: ${shown}`)
  const hosts = ['-o', 'StrictHostKeyChecking=accept-new', '-o', `UserKnownHostsFile=${knownHosts}`]
  return run('ssh', ['-i', key, ...batch, ...quick, ...hosts, ...args, command], { timeout, input })
}

/** The same as another account, with its password instead of a key. */
export function byPassword(shown, account, password, command) {
  const [, ...args] = shown.replace(/\w+@/, `${account}@`).trim().split(/\s+/)
  const only = ['-o', 'PubkeyAuthentication=no', '-o', 'PreferredAuthentications=password', '-o', 'NumberOfPasswordPrompts=1']
  const env = { PATH: process.env.PATH, SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: 'force', TEST_PASSWORD: password }
  return run('ssh', [...quick, ...only, ...anyHostKey, ...args, command], { env })
}

/** The addresses that the lab's authoritative server gives for a name; none if there is no such name. */
export async function resolved(name) {
  const resolver = new Resolver({ timeout: 1000, tries: 2 })
  resolver.setServers([env.CORPUS_LAB_DNS])
  try {
    return await resolver.resolve4(name)
  } catch (error) {
    if (['ENOTFOUND', 'ENODATA', 'EREFUSED', 'ESERVFAIL'].includes(error.code)) return []
    throw error
  }
}

/** The record sets of a zone, `null` if PowerDNS does not hold it. */
export async function zoneRecords(zone) {
  const url = `${env.CORPUS_LAB_DNS_API}/api/v1/servers/localhost/zones/${zone}.`
  const answer = await fetch(url, { headers: { 'X-API-Key': env.CORPUS_LAB_DNS_API_KEY } })
  return answer.status === 404 ? null : (await answer.json()).rrsets
}

const pdns = (method, place, body) => fetch(`${env.CORPUS_LAB_DNS_API}/api/v1/servers/localhost/${place}`, {
  method,
  headers: { 'X-API-Key': env.CORPUS_LAB_DNS_API_KEY, 'Content-Type': 'application/json' },
  ...(body && { body: JSON.stringify(body) }),
})

/** Makes a zone that is none of Corpus', as others do. */
export const makeZone = zone => pdns('POST', 'zones', { name: `${zone}.`, kind: 'Native', nameservers: [`ns1.${zone}.`] })

/** Removes such a zone, if it is there. */
export const removeZone = zone => pdns('DELETE', `zones/${zone}.`)

/** Writes record sets into such a zone. */
export async function writeRecords(zone, rrsets) {
  const answer = await pdns('PATCH', `zones/${zone}.`, { rrsets })
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`)
}

/** An HTTP answer of `address` to a request that names `host`. */
export function httpGet(address, host, { path = '/', port = 80, timeout = 2000 } = {}) {
  return new Promise((resolve, reject) => {
    const request = http.get({ host: address, port, path, headers: { host }, timeout, agent: false }, answer => {
      let body = ''
      answer.setEncoding('utf8')
      answer.on('data', piece => (body += piece))
      answer.on('end', () => resolve({ status: answer.statusCode, body }))
    })
    request.on('timeout', () => request.destroy(new Error(`no answer in ${timeout} ms`)))
    request.on('error', reject)
  })
}

/** `cut`, `heal` or `reboot` of a node. */
export const fault = (what, node) => run(program, [what, node], { timeout: 90_000, env: { ...process.env, CORPUS_LAB_NAME: lab.name } })

// What a node that Corpus does not use has nothing of.
const TRACES = {
  'configuration': 'ls -A /etc/corpus 2>/dev/null',
  'units': 'ls /etc/systemd/system/ 2>/dev/null | grep "^corpus-"',
  'guests': 'ls -A /var/lib/lxc | grep -v "^tmpl$"',
  'images and records': 'ls -A /var/lib/corpus 2>/dev/null | grep -v "^agent$"',
  'bridge': 'ip -br link show type bridge | grep lxcbr1',
  'guest interfaces': 'ip -br link show type veth | grep -v "^eth0"',
  'firewall': 'nft list tables | grep -i corpus',
  'ports kept from connections': 'ls /etc/sysctl.d | grep corpus; grep 50000 /proc/sys/net/ipv4/ip_local_reserved_ports',
  'processes': 'pgrep -a "^(haproxy|corpus-agent|lxc-start)"',
  'our key': 'grep -il corpus /root/.ssh/authorized_keys /home/*/.ssh/authorized_keys 2>/dev/null',
}

/** What is left of Corpus on a node, by kind; empty when nothing is. */
export async function traces(node) {
  const script = Object.entries(TRACES).map(([kind, command]) => `echo "## ${kind}"; ${command} || true`).join('\n')
  const sections = (await onNode(node, script)).split(/^## /m).slice(1)
  const found = sections.map(section => section.trim().split('\n')).filter(lines => lines.length > 1)
  return Object.fromEntries(found.map(([kind, ...lines]) => [kind, lines]))
}

/**
 * Waits until nothing of Corpus is left on a node; fails with what is. An agent ends when the host's
 * sshd tells it that its line is closed, which the job that closed the line does not wait for.
 * Lines of processes that match `except` do not count.
 */
export async function untilClean(node, { limit = PATIENCE, except } = {}) {
  let left
  await until(`nothing of Corpus on ${node}`, async () => {
    left = await traces(node)
    if (except && left.processes) {
      left.processes = left.processes.filter(line => !except.test(line))
      if (left.processes.length === 0) delete left.processes
    }
    return Object.keys(left).length === 0
  }, { limit, pause: 200 }).catch(error => { throw new Error(`${error.message}: ${JSON.stringify(left)}`, { cause: error }) })
}

/**
 * A node without anything of Corpus on it. What an aborted test left is removed by making the lab
 * anew, if it is one for tests; the lab of `make up` is somebody's, and is never touched.
 */
export async function cleanLab() {
  const left = await Promise.all(Object.keys(lab.nodes).map(traces))
  if (left.every(node => Object.keys(node).length === 0)) return
  if (lab.name === 'lab') throw new Error(`the lab is in use: ${JSON.stringify(left)}; run the tests with CORPUS_LAB_NAME=test`)
  const own = { ...process.env, CORPUS_LAB_NAME: lab.name }
  await run(program, ['down'], { env: own, timeout: 120_000 })
  await run(program, ['up'], { env: own, timeout: 300_000 })
}

/** Waits until a node answers SSH. */
export const nodeAnswers = node => until(`ssh on ${node}`, () => onNode(node, 'true').then(() => true))

/** Makes a key pair with ssh-keygen; returns the private file's path and the public line. */
export async function makeKey(path, args = ['-t', 'ed25519']) {
  await Promise.all([path, `${path}.pub`].map(file => rm(file, { force: true })))
  await run('ssh-keygen', ['-q', '-N', '', '-C', 'made by the test', '-f', path, ...args])
  return { path, line: (await readFile(`${path}.pub`, 'utf8')).trim(), private: await readFile(path, 'utf8') }
}
