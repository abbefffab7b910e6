// States of all guests of a project, at once and by schedule; the users that they are to have; and what operators want of a node.
// A user that was taken away does not get in again, whatever it left; one that is no operator any more neither.
import assert from 'node:assert/strict'
import path from 'node:path'
import test from 'node:test'
import { Session } from '../hostile/session.mjs'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import { note, seconds } from '../measures.mjs'
import * as pages from '../pages.mjs'
import { run, until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const NODE = 'node1'
const zone = lab.lab.zone
const names = ['one', 'two', 'three'].map(name => `${name}.${zone}`)

test('states of many guests, users of guests, and a baseline of nodes', async t => {
  await lab.cleanLab()
  const server = await Server.start('states')
  const browser = await launch()
  const visitors = []
  let baselineIsSet = false
  const bob = new Session(server.url)
  const ops = new Session(server.url)
  const json = async (who, place, { method = 'GET', body, status } = {}) => {
    const answer = await who.ask(`/api/v1${place}`, { method, file: body && JSON.stringify(body), headers: body && { 'content-type': 'application/json' } })
    assert.ok(status ? answer.status === status : answer.status < 300, `${method} ${place}: ${answer.status} ${answer.html}`)
    return answer.html ? JSON.parse(answer.html) : undefined
  }
  const jobDone = async id => {
    const job = await until('a job to end', async () => {
      const now = await json(ops, `/jobs/${id}`)
      return ['done', 'undone', 'stuck', 'abandoned'].includes(now.line.state) && now
    }, { limit: 240_000, pause: 200 })
    return job.line.state
  }
  t.after(async () => {
    await browser.close()
    await server.stop()
    if (baselineIsSet) await lab.onNode(NODE, 'rm -f /etc/ssh/sshd_config.d/corpus-baseline.conf /etc/sudoers.d/corpus-operators; systemctl reload ssh')
  })
  const step = story(t, visitors, server)
  const measured = {}
  let alice, visitor, guests, node, key

  const inside = (guest, script) => lab.onNode(NODE, `lxc-attach -n ${guest} -- sh -s`, { input: script, timeout: 120_000 })
  const ssh = (port, user, command, { host = lab.lab.nodes[NODE] } = {}) => run('ssh', ['-p', `${port}`, '-i', key.path, '-o', 'BatchMode=yes', '-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null', '-o', 'IdentitiesOnly=yes', '-o', 'LogLevel=ERROR', '-o', 'ConnectTimeout=10', `${user}@${host}`, command], { timeout: 30_000 }).then(said => said.trim())
  const refused = async (...args) => {
    const said = await ssh(...args).then(text => `entered: ${text}`, error => error.message)
    assert.match(said, /exit 255/, said)
  }
  const listed = async (query = '') => (await json(bob, `/states?project=atlas${query}`)).items

  await step('three guests, each with states of its own', async () => {
    alice = await (await Visitor.open(browser, server)).enter('alice', lab.lab.password)
    visitor = await (await Visitor.open(browser, server)).enter('bob', lab.lab.password)
    visitors.push(alice, visitor)
    node = await pages.readyNode(alice, NODE)
    await bob.enter('bob', lab.lab.password)
    await ops.enter('alice', lab.lab.password)
    key = { path: path.join(server.folder, 'deploy') }
    key.line = (await lab.makeKey(key.path)).line
    for (const name of names) {
      const { job } = await json(bob, '/guests', { method: 'POST', body: { project: 'atlas', environment: 'dev', name, size: 'xsmall' } })
      assert.equal(await jobDone(job), 'done')
      await inside(name, 'mkdir -p /srv/salt; printf "base:\\n  \'*\': [own]\\n" >/srv/salt/top.sls; printf "/etc/own:\\n  file.managed:\\n    - contents: own\\n" >/srv/salt/own.sls')
    }
    guests = Object.fromEntries((await json(bob, '/guests?project=atlas')).items.map(guest => [guest.name, guest]))
  })

  await step('all of them are tried at once, and what differs is listed', async () => {
    await visitor.page.goto('/projects/atlas/states')
    const began = performance.now()
    await pages.press(visitor, 'Try all')
    await until('all to be tried', async () => (await listed('&outcome=differs')).length === 3, { limit: 180_000, pause: 200 })
    measured.tried = performance.now() - began
    await visitor.page.goto('/projects/atlas/states?outcome=differs')
    await visitor.page.getByText('1 are not as they say').nth(2).waitFor()
    assert.equal((await inside(names[0], 'ls /etc/own 2>/dev/null || true')).trim(), '')
  })

  await step('and applied, but where one is not running', async () => {
    assert.equal(await jobDone((await json(bob, `/guests/${guests[names[2]].id}/stop`, { method: 'POST', body: {} })).job), 'done')
    await visitor.page.goto('/projects/atlas/states')
    await pages.press(visitor, 'Apply all')
    await until('two to be applied', async () => (await listed('&outcome=right')).length === 2, { limit: 180_000, pause: 200 })
    assert.equal((await listed('&outcome=differs')).length, 1)
    assert.equal((await inside(names[0], 'cat /etc/own')).trim(), 'own')
  })

  await step('what somebody changes by hand is seen by itself', async () => {
    await inside(names[0], 'echo other >/etc/own')
    await visitor.page.goto('/projects/atlas/states')
    await visitor.page.getByLabel('They are seen to').selectOption('hour')
    await pages.press(visitor, 'Save')
    await until('it to be seen', async () => (await listed('&outcome=differs')).some(one => one.name === names[0]), { limit: 180_000, pause: 200 })
    assert.equal((await inside(names[0], 'cat /etc/own')).trim(), 'other', 'it was only tried')
    assert.equal((await listed('&outcome=right')).length, 1)
  })

  await step('a user comes to all guests, and to one that does not run when it does', async () => {
    await visitor.page.goto('/projects/atlas/users')
    await visitor.page.getByLabel('Name').fill('deploy')
    await visitor.page.getByLabel('Public keys').fill(key.line)
    const began = performance.now()
    await pages.press(visitor, 'Save')
    const entered = guest => until(`deploy to enter ${guest}`, () => ssh(guests[guest].ssh_port, 'deploy', 'id -un').catch(() => ''), { limit: 60_000, pause: 300 })
    assert.equal(await entered(names[0]), 'deploy')
    measured.user = performance.now() - began
    assert.equal(await entered(names[1]), 'deploy')
    assert.match(await ssh(guests[names[0]].ssh_port, 'deploy', 'sudo -n true 2>&1; true'), /password is required|not allowed|a terminal/, 'it may not do what root may')
    assert.equal((await json(bob, '/projects/atlas/users')).waiting, 1)
    assert.equal(await jobDone((await json(bob, `/guests/${guests[names[2]].id}/start`, { method: 'POST', body: {} })).job), 'done')
    assert.equal(await entered(names[2]), 'deploy')
    await refused(guests[names[0]].ssh_port, 'root', 'id')
  })

  await step('with sudo it may, without it may no more', async () => {
    const set = sudo => json(bob, '/projects/atlas/users', { method: 'POST', body: { user: 'deploy', keys: key.line, sudo } })
    await set(true)
    await until('sudo', () => ssh(guests[names[0]].ssh_port, 'deploy', 'sudo -n id -un').then(said => said === 'root', () => false), { limit: 60_000, pause: 300 })
    await set(false)
    await until('no sudo', () => ssh(guests[names[0]].ssh_port, 'deploy', 'sudo -n id -un').then(() => false, () => true), { limit: 60_000, pause: 300 })
  })

  await step('one that is taken away is out, whatever it left, and its name is nobody else\'s', async () => {
    // A key of its own in its home, and a program that goes on.
    await ssh(guests[names[0]].ssh_port, 'deploy', `mkdir -p .ssh && echo '${key.line}' >.ssh/authorized_keys && chmod 700 .ssh && chmod 600 .ssh/authorized_keys && (setsid sleep 4321 >/dev/null 2>&1 </dev/null &)`)
    await json(bob, '/projects/atlas/users/deploy', { method: 'DELETE' })
    await until('it to be out', () => refused(guests[names[0]].ssh_port, 'deploy', 'id').then(() => true, () => false), { limit: 60_000, pause: 300 })
    await until('what runs as it to end', async () => !(await inside(names[0], 'pgrep -x sleep -a | grep 4321 || true')).trim(), { limit: 30_000, pause: 300 })
    assert.match(await inside(names[0], 'ls -d /home/deploy'), /deploy/, 'its files stay')
    // An account that the guest has itself is not taken over.
    await inside(names[1], 'useradd --create-home supplier')
    const before = (await json(ops, '/jobs?kind=guest_users&limit=1')).items[0]?.id
    await json(bob, '/projects/atlas/users', { method: 'POST', body: { user: 'supplier', keys: key.line, sudo: true } })
    const told = await until('its refusal', async () => {
      const jobs = (await json(ops, '/jobs?kind=guest_users&state=undone')).items.filter(job => job.id !== before)
      return jobs.find(job => job.title.includes(names[1]))
    }, { limit: 120_000, pause: 500 })
    const log = await bob.ask(`/jobs/${told.id}`)
    assert.match(log.html, /supplier is an account of the guest's own already/)
    assert.equal((await inside(names[1], 'cat /etc/sudoers.d/corpus-users 2>/dev/null || true')).includes('supplier'), false)
  })

  await step('others see and ask for nothing of it', async () => {
    const dave = new Session(server.url)
    await dave.enter('dave', lab.lab.password)
    assert.deepEqual((await json(dave, '/states')).items, [])
    for (const [method, place, body] of [['GET', '/projects/atlas/states/schedule'], ['POST', '/projects/atlas/states', { test: true }], ['GET', '/projects/atlas/users'], ['POST', '/projects/atlas/users', { user: 'eve', keys: key.line }], ['DELETE', '/projects/atlas/users/supplier']]) {
      const answer = await dave.ask(`/api/v1${place}`, { method, file: body && JSON.stringify(body), headers: body && { 'content-type': 'application/json' } })
      assert.equal(answer.status, 404, `${method} ${place}: ${answer.status}`)
    }
    for (const place of ['/baseline', `${node}/baseline`, '/salt-masters']) assert.equal((await dave.ask(`/api/v1${place}`)).status === 200, false, place)
    await json(bob, '/states', { method: 'POST', body: { test: true }, status: 403 })
  })

  await step('what operators want of a node is tried, applied and taken back', async () => {
    baselineIsSet = true
    const set = async values => {
      const { version, ...now } = await json(ops, '/baseline')
      return ops.ask('/api/v1/baseline', { method: 'PUT', file: JSON.stringify({ ...now, ...values }), headers: { 'content-type': 'application/json', 'if-match': `"${version}"` } })
    }
    for (const [field, value] of [['packages', '--reinstall'], ['operators', `root ${key.line}`], ['operators', `ann command="x" ${key.line}`], ['root_mail', '|/bin/sh'], ['time_servers', 'a b']]) {
      const answer = await set({ [field]: value })
      assert.equal(answer.status, 422, `${field}: ${answer.html}`)
    }
    assert.equal((await set({ operators: `ann ${key.line}`, password_login: false })).status, 200)
    await alice.page.goto(`${node}/baseline`)
    await pages.press(alice, 'Try it')
    await alice.page.getByText('are not as they say').waitFor({ timeout: 120_000 })
    assert.equal((await lab.onNode(NODE, 'id ann 2>/dev/null || true')).trim(), '')
    const began = performance.now()
    await pages.press(alice, 'Apply it')
    const applied = await until('it to be applied', async () => {
      const { last } = await json(ops, `${node}/baseline`)
      return last && !last.test && last
    }, { limit: 120_000, pause: 300 })
    measured.baseline = performance.now() - began
    assert.equal(applied.failed, 0, JSON.stringify(applied.states.filter(state => !state.ok)))
    assert.equal(await ssh(22, 'ann', 'sudo -n id -un'), 'root')
    assert.match(await lab.onNode(NODE, 'sshd -T | grep -i ^passwordauthentication'), /no/)
    // Once more changes nothing.
    await json(ops, `${node}/baseline`, { method: 'POST', body: { test: true } })
    await until('it to be tried', async () => (await json(ops, `${node}/baseline`)).last.test, { limit: 120_000, pause: 300 })
    assert.equal((await json(ops, `${node}/baseline`)).last.changed, 0)
    assert.equal((await set({ operators: '', password_login: true })).status, 200)
    assert.equal(await jobDone((await json(ops, `${node}/baseline`, { method: 'POST', body: {} })).job), 'done')
    await refused(22, 'ann', 'id')
    assert.equal((await lab.onNode(NODE, 'ls /etc/sudoers.d/corpus-operators 2>/dev/null || true')).trim(), '')
    await lab.onNode(NODE, 'userdel -r ann 2>/dev/null || true')
  })

  await step('nothing stays', async () => {
    for (const name of names) await pages.destroy(visitor, `/guests/${guests[name].id}`, name)
  })

  note('States of many, users of guests, a baseline', [
    ['states of three guests tried, Salt brought', seconds(measured.tried)],
    ['from the form to the first login of a user', seconds(measured.user)],
    ['a baseline applied on a node', seconds(measured.baseline)],
  ])
})
