// Ten files on fifty guests, by what there is: Corpus' own jobs without a master, a Salt master of the controller, salt-ssh and
// Ansible, one after the other on the same guests. Nothing is asserted of how long each takes: it is written down.
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { Session } from '../hostile/session.mjs'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import { note, seconds } from '../measures.mjs'
import * as pages from '../pages.mjs'
import { run, until } from '../process.mjs'
import { SaltMaster } from '../salt-master.mjs'
import { Server, freePort } from '../server.mjs'
import { story } from '../steps.mjs'

const COUNT = Number(process.env.CORPUS_TEST_GUESTS ?? 50)
const FILES = 10
const zone = lab.lab.zone
const LONG = { limit: Math.max(60_000, COUNT * 20_000), pause: 500 }

test('ten files on fifty guests', { timeout: 3_600_000 }, async t => {
  await lab.cleanLab()
  const address = lab.lab.env.CORPUS_LAB_GATEWAY
  const server = await Server.start('fifty', { salt_master: { address, publish_port: await freePort(), request_port: await freePort() } })
  const browser = await launch()
  const folder = path.join(server.data, 'salt')
  let master
  t.after(async () => {
    await browser.close()
    await master?.end()
    await server.stop()
  })
  const [bob, ops] = [new Session(server.url), new Session(server.url)]
  const visitors = []
  const step = story(t, visitors, server)
  const json = async (who, place, { method = 'GET', body, version } = {}) => {
    const headers = body && { 'content-type': 'application/json', ...(version && { 'if-match': `"${version}"` }) }
    const answer = await who.ask(`/api/v1${place}`, { method, file: body && JSON.stringify(body), headers })
    assert.ok(answer.status < 300, `${method} ${place}: ${answer.status} ${answer.html}`)
    return JSON.parse(answer.html)
  }
  const rows = []
  const timed = async (what, work) => {
    const began = performance.now()
    await work()
    rows.push([what, seconds(performance.now() - began)])
  }
  const sls = FILES_of('corpus')
  function FILES_of(name) {
    return Array.from({ length: FILES }, (_, at) => `/etc/${name}-${at}:\n  file.managed:\n    - contents: '${name} ${at}'\n`).join('')
  }
  let guests, key

  await step('fifty guests that a user with sudo enters', async () => {
    const alice = await (await Visitor.open(browser, server)).enter('alice', lab.lab.password)
    visitors.push(alice)
    await bob.enter('bob', lab.lab.password)
    await ops.enter('alice', lab.lab.password)
    for (const node of Object.keys(lab.lab.nodes)) await pages.readyNode(alice, node)
    for (const { id } of (await json(ops, '/nodes')).items) {
      const { overcommit, version } = await json(ops, `/nodes/${id}/overcommit`)
      await json(ops, `/nodes/${id}/overcommit`, { method: 'PUT', body: { ...overcommit, memory: 1_000, cpu: 10_000, storage: 1_000 }, version })
    }
    key = path.join(server.folder, 'deploy')
    const { line } = await lab.makeKey(key)
    await json(bob, '/projects/atlas/users', { method: 'POST', body: { user: 'deploy', keys: line, sudo: true } })
    await timed(`${COUNT} guests requested and ready, each with its user`, async () => {
      for (let at = 0; at < COUNT; at += 1) await json(ops, '/guests', { method: 'POST', body: { project: 'atlas', environment: 'dev', name: `g${at}.${zone}`, size: 'xxsmall' } })
      await until('all to run', async () => (await json(bob, '/guests?project=atlas&state=running&limit=200')).items.length === COUNT, LONG)
    })
    guests = (await json(bob, '/guests?project=atlas&limit=200')).items
    const hosts = Object.entries(lab.lab.nodes)
    for (const [node] of hosts) {
      const script = `for guest in $(lxc-ls -1 --running); do lxc-attach -n $guest -- sh -c 'mkdir -p /srv/salt && cat >/srv/salt/own.sls && printf "base:\\n  \\047*\\047: [own]\\n" >/srv/salt/top.sls' <<'END'\n${sls}END\ndone`
      await lab.onNode(node, 'sh -s', { input: script, timeout: 120_000 })
    }
  })

  const applied = async test => {
    await json(bob, '/projects/atlas/states', { method: 'POST', body: { test } })
    await until('all to be seen to', async () => {
      const { items } = await json(bob, '/states?project=atlas&limit=200')
      return items.every(one => one.last && !one.asked_at && one.last.test === test) && !(await json(bob, '/jobs?kind=guest_states&state=waiting&state=running&state=undoing')).items.length
    }, LONG)
    assert.equal((await json(bob, '/states?project=atlas&outcome=failed')).items.length, 0)
  }
  await step('by jobs of Corpus, without a master', async () => {
    await timed('Corpus, masterless: Salt brought, applied', () => applied(false))
    await timed('Corpus, masterless: tried', () => applied(true))
    await timed('Corpus, masterless: applied again', () => applied(false))
  })

  await step('by salt-ssh', async () => {
    const conf = path.join(server.folder, 'salt-ssh')
    mkdirSync(path.join(conf, 'states'), { recursive: true })
    const packages = path.join(conf, 'packages')
    mkdirSync(packages)
    await run('tar', ['-C', packages, '-xf', process.env.CORPUS_SALT_BUNDLE], { timeout: 120_000 })
    writeFileSync(path.join(conf, 'states/ssh.sls'), FILES_of('ssh'))
    const roster = Object.fromEntries(guests.map(guest => [guest.name, { host: nodeOf(guest), port: guest.ssh_port, user: 'deploy', sudo: true, priv: key }]))
    writeFileSync(path.join(conf, 'roster'), JSON.stringify(roster))
    writeFileSync(path.join(conf, 'master'), JSON.stringify({ root_dir: conf, pki_dir: path.join(conf, 'pki'), cachedir: path.join(conf, 'cache'), log_file: '/dev/null', ssh_log_file: '/dev/null', roster_file: path.join(conf, 'roster'), file_roots: { base: [path.join(conf, 'states')] }, ssh_options: ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null'] }))
    const code = `import sys; sys.path.insert(0, ${JSON.stringify(packages)})
import salt.scripts
sys.argv = ['salt-ssh', '-c', ${JSON.stringify(conf)}, '-i', '--max-procs=20', '--out=json', '--static', '*', 'state.apply', 'ssh']
salt.scripts.salt_ssh()`
    for (const what of ['first', 'again']) {
      await timed(`salt-ssh, 20 at once: ${what}`, async () => {
        const said = JSON.parse(await run('python3', ['-B', '-W', 'ignore', '-c', code], { timeout: 1_200_000 }))
        const well = Object.values(said).filter(one => typeof one === 'object' && Object.values(one).every(state => state.result))
        assert.equal(well.length, COUNT, JSON.stringify(Object.values(said)[0]).slice(0, 500))
      })
    }
  })
  function nodeOf(guest) {
    return guest.node_address
  }

  await step('by Ansible, where it is installed', async t => {
    const there = await run('ansible-playbook', ['--version']).then(said => said.split('\n')[0], () => undefined)
    if (!there) return t?.diagnostic?.('ansible-playbook is not there: pip install ansible-core')
    const place = path.join(server.folder, 'ansible')
    mkdirSync(place)
    writeFileSync(path.join(place, 'hosts.json'), JSON.stringify({ all: { hosts: Object.fromEntries(guests.map(guest => [guest.name, { ansible_host: nodeOf(guest), ansible_port: guest.ssh_port, ansible_user: 'deploy', ansible_ssh_private_key_file: key, ansible_become: true, ansible_python_interpreter: '/usr/bin/python3', ansible_ssh_common_args: '-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null' }])) } }))
    const tasks = Array.from({ length: FILES }, (_, at) => ({ copy: { dest: `/etc/ansible-${at}`, content: `ansible ${at}` } }))
    writeFileSync(path.join(place, 'play.json'), JSON.stringify([{ hosts: 'all', gather_facts: false, tasks }]))
    for (const what of ['first', 'again']) {
      await timed(`${there}, 20 at once: ${what}`, () => run('ansible-playbook', ['-f', '20', '-i', 'hosts.json', 'play.json'], { cwd: place, timeout: 1_200_000, env: { ...process.env, ANSIBLE_PIPELINING: 'true' } }))
    }
  })

  await step('by a Salt master of the controller', async () => {
    mkdirSync(path.join(folder, 'states'), { recursive: true })
    writeFileSync(path.join(folder, 'states/top.sls'), "base:\n  '*':\n    - master\n")
    writeFileSync(path.join(folder, 'states/master.sls'), FILES_of('master'))
    master = new SaltMaster(server)
    await until('the master', async () => (await json(ops, '/salt-masters')).items.length, { limit: 120_000, pause: 500 })
    await timed(`all ${COUNT} switched to mastersalt`, async () => {
      for (const guest of guests) await json(bob, `/guests/${guest.id}/mode`, { method: 'POST', body: { mode: 'mastersalt' } })
      await until('all to be so', async () => (await json(bob, '/states?project=atlas&limit=200')).items.every(one => one.mode === 'mastersalt'), LONG)
    })
    const well = said => Object.values(said).filter(one => one === true || typeof one === 'object' && Object.values(one).every(state => state.result)).length
    // What a master says before a minion listens is lost.
    await timed('all answer it', () => until('all to answer', async () => well(await master.ask('test.ping', 10)) === COUNT, LONG))
    for (const what of ['first', 'again']) {
      await timed(`the controller's master, salt '*' state.apply: ${what}`, async () => assert.equal(well(await master.ask('state.apply', 180)), COUNT))
    }
    await timed("the controller's master, by jobs of Corpus", () => applied(false))
  })

  note(`Ten files on ${COUNT} guests`, rows)
})
