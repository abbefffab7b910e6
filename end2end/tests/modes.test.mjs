// A guest goes masterless, salt, mastersalt and back, on its page and by `computenode_switchmode`; its states are those that lie
// in it, or those of operators. Its root is a hostile minion then: another's name, key and pillar, and words to others.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { Session } from '../hostile/session.mjs'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import { note, seconds } from '../measures.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { SaltMaster } from '../salt-master.mjs'
import { Server, freePort } from '../server.mjs'
import { story } from '../steps.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const program = path.join(root, 'target/corpus/corpus')
const NODE = 'node1'
const zone = lab.lab.zone
const [name, other] = [`salted.${zone}`, `beside.${zone}`]

test('a guest goes from mode to mode and back', async t => {
  await lab.cleanLab()
  const address = lab.lab.env.CORPUS_LAB_GATEWAY
  const [publish_port, request_port] = [await freePort(), await freePort()]
  // What operators write is in git.
  const tree = mkdtempSync(path.join(tmpdir(), 'corpus-states-'))
  const git = (...args) => execFileSync('git', ['-C', tree, '-c', 'user.name=ops', '-c', 'user.email=ops@example.org', ...args], { encoding: 'utf8' })
  const push = files => {
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(path.dirname(path.join(tree, file)), { recursive: true })
      writeFileSync(path.join(tree, file), text)
    }
    git('add', '--all')
    git('commit', '--quiet', '-m', 'states')
    return git('rev-parse', 'HEAD').trim()
  }
  git('init', '--quiet', '-b', 'main')
  const server = await Server.start('modes', { salt_master: { address, publish_port, request_port, git: tree, git_every_s: 5 } })
  const folder = path.join(server.data, 'salt')
  const browser = await launch()
  const visitors = []
  let master
  t.after(async () => {
    await browser.close()
    await master?.end()
    await server.stop()
    rmSync(tree, { recursive: true, force: true })
  })
  const step = story(t, visitors, server)
  const [bob, ops] = [new Session(server.url), new Session(server.url)]
  const measured = {}
  let page, token, alice

  const inside = (guest, script, options) => lab.onNode(NODE, `lxc-attach -n ${guest} -- sh -s`, { input: script, timeout: 120_000, ...options })
  const json = async (place, { method = 'GET', body } = {}) => {
    const answer = await bob.ask(`/api/v1${place}`, { method, file: body && JSON.stringify(body), headers: body && { 'content-type': 'application/json' } })
    assert.ok(answer.status < 300, `${method} ${place}: ${answer.status} ${answer.html}`)
    return JSON.parse(answer.html)
  }
  const corpus = (...args) => new Promise(resolve => {
    const env = { HOME: server.folder, PATH: '/usr/bin:/bin', CORPUS_URL: server.url, CORPUS_TOKEN: token }
    execFile(program, args, { env, timeout: 300_000 }, (error, said, warned) => resolve({ code: error ? error.code : 0, text: said + warned }))
  })
  const done = async (...args) => {
    const { code, text } = await corpus(...args)
    assert.equal(code, 0, `corpus ${args.join(' ')}: ${text}`)
    return text
  }
  const shown = () => json(`${page}/states`)
  const known = async () => JSON.parse((await ops.ask('/api/v1/salt-masters')).html).items[0]
  const arrives = async files => {
    const commit = push(files)
    await until('the commit', async () => {
      const is = await known()
      if (is.tree.commit === commit) return true
      throw new Error(`${commit} is not there: ${JSON.stringify(is)}; ${master.ended ?? 'its service runs'}`)
    }, { limit: 330_000, pause: 500 })
  }
  const is = async (mode, active) => {
    const now = await shown()
    assert.equal(now.mode, mode)
    const units = await inside(name, 'systemctl is-active corpus-salt-minion corpus-salt-master || true')
    assert.deepEqual(units.trim().split('\n'), active)
    return now
  }
  const timed = async work => {
    const began = performance.now()
    await work()
    return performance.now() - began
  }

  await step('two guests, and states of operators', async () => {
    alice = await (await Visitor.open(browser, server)).enter('alice', lab.lab.password)
    visitors.push(alice)
    await pages.readyNode(alice, NODE)
    await bob.enter('bob', lab.lab.password)
    await ops.enter('alice', lab.lab.password)
    token = (await json('/tokens', { method: 'POST', body: { name: 'modes', scope: 'all', days: 1 } })).token
    for (const guest of [name, other]) await done('guest', 'request', '--project', 'atlas', '--environment', 'dev', '--name', guest, '--size', 'small')
    page = `/guests/${(await json(`/guests?q=${name}`)).items[0].id}`
    push({
      'states/top.sls': "base:\n  'corpus:environment:dev':\n    - match: pillar\n    - ours\n",
      'states/ours.sls': '/etc/ours:\n  file.managed:\n    - contents: {{ pillar["corpus"]["project"] }} {{ pillar["corpus"]["name"] }}\n',
    })
    await inside(name, 'mkdir -p /srv/salt; printf "base:\\n  \'*\': [own]\\n" >/srv/salt/top.sls; printf "/etc/own:\\n  file.managed:\\n    - contents: own\\n" >/srv/salt/own.sls')
    await is('masterless', ['inactive', 'inactive'])
  })

  await step('to a master of its own, by the command of old', async () => {
    measured.salt = await timed(() => done('computenode_switchmode', '-', name, 'salt'))
    await is('salt', ['active', 'active'])
    await done('guest', 'apply-states', name)
    assert.equal((await inside(name, 'cat /etc/own')).trim(), 'own')
    assert.equal((await shown()).last.ran, 1)
  })

  await step('there is no master of the controller yet, which is said', async () => {
    const refused = await corpus('computenode_switchmode', '-', name, 'mastersalt')
    assert.ok(refused.code !== 0 && refused.text.includes('No Salt master of the controller is there'), refused.text)
    await is('salt', ['active', 'active'])
  })

  await step("to the controller's master, on its page", async () => {
    master = new SaltMaster(server)
    await until('the master', async () => (await corpus('computenode_switchmode', '-', other, 'mastersalt')).code === 0, { limit: 120_000, pause: 500 })
    const visitor = await (await Visitor.open(browser, server)).enter('bob', lab.lab.password)
    visitors.push(visitor)
    await visitor.page.goto(`${page}/states`)
    await visitor.page.getByLabel('Managed by').selectOption('mastersalt')
    measured.mastersalt = await timed(async () => {
      await pages.press(visitor, 'Switch')
      await until('it to be so', async () => (await shown()).mode === 'mastersalt', { limit: 120_000, pause: 50 })
    })
    const now = await is('mastersalt', ['active', 'inactive'])
    assert.equal(now.master, 'main')
    measured.states = await timed(() => done('guest', 'apply-states', name))
    assert.equal((await inside(name, 'cat /etc/ours')).trim(), `atlas ${name}`)
    // What drifted is shown before it is put right.
    await inside(name, 'echo drifted >/etc/ours')
    await done('guest', 'apply-states', name, '--test', 'true')
    const tried = (await shown()).last
    assert.deepEqual([tried.test, tried.changed, tried.failed], [true, 1, 0])
    await visitor.page.goto(`${page}/states`)
    await visitor.page.getByText('1 are not as they say').waitFor()
  })

  await step('a hostile minion gets nothing of another, and reaches nobody', async () => {
    const said = await inside(name, `cat >/tmp/evil.py <<'END'
import os, sys
sys.path.insert(0, '/opt/corpus/salt/' + os.listdir('/opt/corpus/salt')[0])
import salt.client, salt.config
opts = salt.config.minion_config('/etc/corpus/salt/minion/minion')
opts.update(caller=True, auth_tries=1, auth_timeout=5, master_tries=1, log_file=os.devnull)
what = sys.argv[1]
if what == 'name': opts['id'] = '${other}'
if what == 'stranger': opts['id'] = 'stranger.${zone}'
caller = salt.client.Caller(mopts=opts)
if what == 'publish': print('reached', caller.cmd('publish.publish', '*', 'cmd.run', 'touch /tmp/reached'), caller.cmd('publish.full_data', '${other}', 'test.ping'))
else: print('pillar', caller.cmd('pillar.items'))
END
for what in name stranger; do timeout 60 python3 -W ignore /tmp/evil.py $what 2>&1 | grep '^pillar' && echo "TAKEN as $what"; done
timeout 60 python3 -W ignore /tmp/evil.py publish 2>&1 | grep '^reached'
timeout 60 python3 -W ignore /tmp/evil.py own 2>&1 | grep -c '^pillar'
true`, { timeout: 300_000 })
    assert.ok(!said.includes('TAKEN'), said)
    // As itself it is taken, so it was the name that was refused.
    assert.deepEqual(said.trim().split('\n'), ['reached {} {}', '1'])
    assert.equal((await inside(other, 'ls /tmp/reached 2>/dev/null || true')).trim(), '')
    // What came uncalled for is nobody's.
    assert.deepEqual(master.minions(), [other, name].sort())
  })

  await step('operators see who was not taken', async () => {
    await alice.page.goto('/salt-masters')
    const refused = alice.page.getByRole('table', { name: 'Minions that were not taken' })
    await refused.getByText(`stranger.${zone}`).waitFor()
    await refused.getByRole('row', { name: new RegExp(other) }).getByText("A guest's name, another key").waitFor()
    assert.deepEqual(['minions_pre', 'minions_denied'].flatMap(kind => existsSync(path.join(folder, 'master/pki', kind)) ? readdirSync(path.join(folder, 'master/pki', kind)) : []), [], 'they fill no disk')
    assert.equal((await bob.ask('/api/v1/salt-masters')).status, 403)
    await alice.page.goto('/audit?action=salt.refused')
    await alice.page.getByText(other).first().waitFor()
  })

  await step('a commit of operators is there soon, and one that can\'t be had leaves what was there', async () => {
    await arrives({ 'states/ours.sls': '/etc/ours:\n  file.managed:\n    - contents: second {{ pillar["corpus"]["name"] }}\n' })
    await done('guest', 'apply-states', name)
    assert.equal((await inside(name, 'cat /etc/ours')).trim(), `second ${name}`)
    git('mv', 'states', 'elsewhere')
    push({})
    await until('what is wrong', async () => (await known()).tree.problem?.includes('no folder states'), { limit: 60_000, pause: 500 })
    await done('guest', 'apply-states', name)
    await alice.page.goto('/salt-masters')
    await alice.page.getByText('Not the latest').waitFor()
    git('mv', 'elsewhere', 'states')
    await arrives({ 'states/ours.sls': '/etc/ours:\n  file.managed:\n    - contents: {{ pillar["corpus"]["project"] }} {{ pillar["corpus"]["name"] }}\n' })
    assert.equal((await known()).tree.problem, null)
  })

  await step('a guest that is rebooted in the middle of its states says so, and is put right by the next ones', async () => {
    await arrives({ 'states/ours.sls': '/etc/ours:\n  file.managed:\n    - contents: {{ pillar["corpus"]["project"] }} {{ pillar["corpus"]["name"] }}\nsleep 20:\n  cmd.run\n' })
    const slow = corpus('guest', 'apply-states', name)
    await until('the states to run', async () => (await inside(name, 'pgrep -f "^sleep 20" || true')).trim(), { limit: 60_000, pause: 300 })
    await lab.onNode(NODE, `lxc-stop -n ${name} --reboot --timeout 20 || lxc-stop -n ${name} -k; lxc-start -n ${name} 2>/dev/null || true`, { timeout: 60_000 })
    const ended = await slow
    // Tried once more when it was back, or told as failed: never as done with nothing run.
    if (ended.code === 0) assert.equal((await shown()).last.ran, 2, ended.text)
    await arrives({ 'states/ours.sls': '/etc/ours:\n  file.managed:\n    - contents: {{ pillar["corpus"]["project"] }} {{ pillar["corpus"]["name"] }}\n' })
    await until('it to be applied', async () => (await corpus('guest', 'apply-states', name)).code === 0 && (await shown()).last.ran === 1, { limit: 120_000, pause: 1000 })
  })

  await step('a state tree with an error is told', async () => {
    await arrives({ 'states/ours.sls': '{% if %}\n' })
    assert.notEqual((await corpus('guest', 'apply-states', name)).code, 0)
    assert.equal((await shown()).last.failed, 1)
    await arrives({ 'states/ours.sls': '/etc/ours:\n  file.managed:\n    - contents: {{ pillar["corpus"]["project"] }} {{ pillar["corpus"]["name"] }}\n' })
    await until('it to be applied', async () => (await corpus('guest', 'apply-states', name)).code === 0, { limit: 60_000, pause: 1000 })
  })

  await step('the master is killed, and comes back', async () => {
    await master.end('SIGKILL')
    const away = await corpus('guest', 'apply-states', name)
    assert.ok(away.code !== 0 && away.text.includes('does not answer'), away.text)
    master = new SaltMaster(server)
    await until('it to be applied', async () => (await corpus('guest', 'apply-states', name)).code === 0, { limit: 180_000, pause: 1000 })
  })

  await step('back again, nothing is left of it', async () => {
    await done('computenode_switchmode', '-', name, 'masterless')
    await is('masterless', ['inactive', 'inactive'])
    await until('its key to be gone', async () => !existsSync(path.join(folder, 'master/pki/minions', name)))
    assert.equal((await inside(name, 'ls /etc/corpus/salt/minion/pki 2>/dev/null || true')).trim(), '')
    assert.ok(existsSync(path.join(folder, 'master/pki/minions', other)), 'the other one stays')
  })

  await step('a guest that is destroyed is known no more, nor is who has its name', async () => {
    const key = readFileSync(path.join(folder, 'master/pki/minions', other), 'utf8')
    await done('guest', 'destroy', other)
    await until('its key to be gone', async () => !existsSync(path.join(folder, 'master/pki/minions', other)))
    measured.requested = await timed(() => done('guest', 'request', '--project', 'atlas', '--environment', 'dev', '--name', other, '--size', 'small', '--mode', 'mastersalt'))
    assert.notEqual(readFileSync(path.join(folder, 'master/pki/minions', other), 'utf8'), key)
    assert.equal((await inside(other, 'cat /etc/ours')).trim(), `atlas ${other}`, 'its states were applied before it was ready')
    for (const guest of [name, other]) await done('guest', 'destroy', guest)
  })

  note('Modes of a guest', [
    ['switched to a master of its own, Salt brought', seconds(measured.salt)],
    ["switched to the controller's master", seconds(measured.mastersalt)],
    ['its states applied', seconds(measured.states)],
    ['a guest requested with that mode, its states applied', seconds(measured.requested)],
  ])
})
