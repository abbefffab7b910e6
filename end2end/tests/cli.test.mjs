// The command line as a person at a terminal and a Jenkins job use it: let in at a browser, a node and a
// guest made, entered and destroyed, the spelling of old, and every way to end.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Server, out } from '../server.mjs'
import { story } from '../steps.mjs'

const program = fileURLToPath(new URL('../../target/corpus/corpus', import.meta.url))
const NODE = 'node1'
const zone = `cli.${lab.lab.zone}`
const guestName = `www.${zone}`

/** A person's own folder, where `corpus` keeps what it knows. */
class Home {
  constructor(name, key) {
    this.folder = path.join(out, 'cli', name)
    rmSync(this.folder, { recursive: true, force: true })
    mkdirSync(path.join(this.folder, 'bin'), { recursive: true })
    // The person's own ssh, with a key of the test.
    const ssh = `#!/bin/sh\nexec /usr/bin/ssh -F /dev/null -i ${key} -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o KexAlgorithms=curve25519-sha256 "$@"\n`
    writeFileSync(path.join(this.folder, 'bin/ssh'), ssh)
    chmodSync(path.join(this.folder, 'bin/ssh'), 0o755)
    this.env = { HOME: this.folder, PATH: `${this.folder}/bin:/usr/bin:/bin` }
  }

  /** Runs a command; how it ended and what it said. */
  corpus(args, { input = '', env } = {}) {
    return new Promise(resolve => {
      const child = execFile(program, args, { env: { ...this.env, ...env }, timeout: 120_000, maxBuffer: 16 << 20 }, (error, said, warned) =>
        resolve({ code: error ? error.code : 0, said, warned }))
      child.stdin.on('error', () => {})
      child.stdin.end(input)
    })
  }

  /** The same, which must go well. */
  async done(...args) {
    const ended = await this.corpus(args)
    assert.equal(ended.code, 0, `corpus ${args.join(' ')}: ${ended.code}\n${ended.said}${ended.warned}`)
    return ended
  }

  /** What a command answers as JSON. */
  async json(...args) {
    return JSON.parse((await this.done(...args, '--json')).said)
  }

  /** `corpus login` at a terminal, and what its person does at the browser meanwhile. */
  login(url, decide) {
    return new Promise((resolve, reject) => {
      const child = spawn(program, ['login', url, '--name', 'lab'], { env: this.env, stdio: ['ignore', 'pipe', 'pipe'] })
      let said = ''
      let code
      child.stdout.on('data', data => { said += data })
      child.stderr.on('data', data => {
        said += data
        code ??= /type ([A-Z]{4}-[A-Z]{4})/.exec(said)?.[1]
        if (code && decide) {
          const asked = decide
          decide = null
          asked(code).catch(reject)
        }
      })
      child.on('close', status => resolve({ code: status, said }))
    })
  }
}

test('the command line', async t => {
  await lab.cleanLab()
  const server = await Server.start('cli', { projects: { create: 'members' } })
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
  })
  const step = story(t, visitors, server)
  const folder = path.join(out, 'cli')
  mkdirSync(folder, { recursive: true })
  const key = await lab.makeKey(path.join(folder, 'key'))
  const [alice, bob] = [new Home('alice', key.path), new Home('bob', key.path)]
  const known = home => readFileSync(path.join(home.folder, '.config/corpus/config.toml'), 'utf8')
  let node, guest

  await step('without a token it says how to come to one', async () => {
    const lost = await alice.corpus(['guest', 'list'])
    assert.equal(lost.code, 2)
    assert.match(lost.warned, /corpus login https/)
  })

  await step('alice lets it in at a browser, where she sees who asks', async () => {
    const visitor = await Visitor.open(browser, server)
    visitors.push(visitor)
    await visitor.enter('alice', lab.lab.password)
    const { page } = visitor
    const ended = await alice.login(server.url, async code => {
      await page.goto('/device')
      await page.getByLabel('Code').fill('BBBB-BBBB')
      await pages.press(visitor, 'Continue')
      await pages.summary(visitor).getByText('No program waits under this code').waitFor()
      await page.getByLabel('Code').fill(code.toLowerCase())
      await pages.press(visitor, 'Continue')
      await page.getByText('corpus on ').waitFor()
      await visitor.screenshot('cli-device')
      await pages.press(visitor, 'Let it in')
      await page.getByText('The program is let in').waitFor()
    })
    assert.equal(ended.code, 0, ended.said)
    assert.match(ended.said, /lab: logged in as alice/)
    assert.equal(statSync(path.join(alice.folder, '.config/corpus/config.toml')).mode & 0o777, 0o600)
    const refused = await bob.login(server.url, async code => {
      await page.goto(`/device?code=${code}`)
      await pages.press(visitor, 'Refuse')
      await page.getByText('The program is refused').waitFor()
    })
    assert.equal(refused.code, 1, refused.said)
    assert.equal((await alice.json('me')).login, 'alice')
  })

  await step('alice makes a zone, links a node and initializes it, as a script would', async () => {
    await alice.done('zone', 'create', '--name', zone, '--access', 'all')
    const { host_key: hostKey, fingerprint } = await alice.json('node', 'probe-host-key', '--address', lab.lab.nodes[NODE])
    assert.ok((await lab.fingerprints(NODE)).includes(fingerprint))
    const password = path.join(folder, 'password')
    writeFileSync(password, lab.lab.nodePassword, { mode: 0o600 })
    const linked = await alice.done('node', 'link', '--address', lab.lab.nodes[NODE], '--host-key', hostKey, '--password-file', password, ...['dev', 'staging'].flatMap(name => ['--environments', name]))
    assert.ok(!`${linked.said}${linked.warned}`.includes(lab.lab.nodePassword))
    const begun = await alice.done('node', 'initialize', lab.lab.nodes[NODE])
    assert.match(begun.warned, /done/i, 'the steps are shown as they end')
    node = (await alice.json('node', 'list')).items[0]
    assert.equal(node.address, lab.lab.nodes[NODE])
    assert.match((await alice.done('node', 'list')).said, new RegExp(lab.lab.nodes[NODE]), 'a table for people')
  })

  await step('bob comes in by the file of old, and its password makes one token', async () => {
    writeFileSync(path.join(bob.folder, '.makinastates.conf'), `prod:\n  url: ${server.url}\n  id: bob\n  password ${lab.lab.password}\n`)
    for (let n = 0; n < 3; n++) assert.equal((await bob.json('me', '--place', 'prod')).login, 'bob')
    assert.equal((await bob.json('token', 'list', '--place', 'prod')).items.length, 1)
    assert.ok(!known(bob).includes(lab.lab.password))
    assert.match((await bob.done('computenode_list', 'prod')).said, new RegExp(lab.lab.nodes[NODE]))
  })

  await step('bob requests a guest in the spelling of old, enters it, and destroys it', async () => {
    await bob.done('key', 'add', '--line', key.line, '--place', 'prod')
    await bob.done('project_create', 'prod', 'commands')
    const wrong = await bob.corpus(['guest_create', 'prod', 'NOT A NAME', 'commands', 'dev', 'tiny'])
    assert.equal(wrong.code, 1)
    assert.match(wrong.warned, /name: .*\n?[\s\S]*size: /, 'all that is wrong is said at once')
    const made = await bob.done('guest_create', 'prod', guestName, 'commands', 'dev', 'small')
    assert.match(made.warned, /done/i)
    guest = await bob.json('guest', 'get', guestName, '--place', 'prod')
    assert.equal(guest.line.name, guestName)
    const entered = await bob.done('guest', 'ssh', guestName, '--place', 'prod', '--', 'hostname')
    assert.match(entered.said, /^www/)
    const { items: [job] } = await bob.json('job', 'list', '--place', 'prod', '--limit', '1')
    assert.match((await bob.done('logs', job.id, '--place', 'prod')).said, /./)
    const followed = await bob.done('logs', '-f', job.id, '--place', 'prod')
    assert.match(followed.said, /./)
  })

  await step('alice says what guests are like by a profile, and bob requests one by its name only', async () => {
    await alice.done('profile', 'create', '--name', 'tiny', '--comment', 'For tries')
    await alice.done('profile', 'set', 'tiny', '--size', 'xxsmall', '--backing', 'loop', '--memory', '384 MiB', '--usual-in', 'staging')
    assert.deepEqual((await bob.json('profile', 'get', 'tiny', '--place', 'prod')).usual_in, ['staging'])
    assert.match((await bob.done('profile', 'list', '--place', 'prod')).said, /tiny/)
    assert.equal((await bob.corpus(['profile', 'remove', 'tiny', '--place', 'prod'])).code, 1)
    const name = `tiny.${zone}`
    await bob.done('guest', 'request', '--name', name, '--project', 'commands', '--environment', 'dev', '--profile', 'tiny', '--place', 'prod')
    const made = await bob.json('guest', 'get', name, '--place', 'prod')
    assert.deepEqual([made.profile, made.line.size, made.backing, made.limits.memory], ['tiny', 'xxsmall', 'loop', 384 << 20])
    await bob.done('guest', 'destroy', name, '--place', 'prod')
    const allowed = ['overlayfs', 'loop', 'dir'].flatMap(one => ['--allowed', one])
    await alice.done('backing', 'set', 'prod', ...allowed)
    assert.deepEqual((await alice.json('backing', 'get', 'prod')).allowed.sort(), ['dir', 'loop', 'overlayfs'])
    await alice.done('profile', 'remove', 'tiny')
  })

  await step('alice allows a line of configurations, and bob has it in that of his guest', async () => {
    await alice.done('lxc-line', 'create', '--name', 'files', '--key', 'lxc.prlimit.nofile', '--value', '4096')
    assert.equal((await alice.corpus(['lxc-line', 'create', '--name', 'evil', '--key', 'lxc.rootfs.path', '--value', '/'])).code, 1)
    assert.equal((await bob.corpus(['lxc-line', 'remove', 'files', '--place', 'prod'])).code, 1)
    await bob.done('guest', 'set-settings', guestName, '--autostart', 'true', '--conf', 'files', '--place', 'prod')
    const has = await bob.json('guest', 'get-settings', guestName, '--place', 'prod')
    assert.deepEqual([has.autostart, has.conf], [true, ['files']])
    assert.equal((await alice.corpus(['lxc-line', 'remove', 'files'])).code, 1, 'a guest has it')
    await bob.done('guest', 'set-settings', guestName, '--place', 'prod')
    await alice.done('lxc-line', 'remove', 'files')
  })

  await step('a job is not waited for, or not long enough, or cancelled', async () => {
    const stopped = await bob.json('guest', 'stop', guestName, '--place', 'prod', '--no-wait')
    await bob.done('job', 'follow', stopped.job, '--place', 'prod')
    const late = await bob.corpus(['guest', 'start', guestName, '--place', 'prod', '--timeout', '0'])
    assert.equal(late.code, 5, late.warned)
    await until('the guest to run', async () => (await bob.json('guest', 'get', guestName, '--place', 'prod')).line.state === 'running')
    await lab.fault('cut', NODE)
    try {
      const cut = await bob.json('guest', 'restart', guestName, '--place', 'prod', '--no-wait')
      await bob.corpus(['job', 'cancel', cut.job, '--place', 'prod', '--no-wait'])
      await lab.fault('heal', NODE)
      const ended = await bob.corpus(['job', 'follow', cut.job, '--place', 'prod'])
      assert.ok([0, 3].includes(ended.code), `${ended.code} ${ended.warned}`)
    } finally {
      await lab.fault('heal', NODE)
    }
    const strange = await bob.corpus(['guest', 'get', 'nothing.example.org', '--place', 'prod'])
    assert.equal(strange.code, 1)
    assert.match(strange.warned, /no guest nothing\.example\.org/)
    assert.equal((await bob.corpus(['trim', 'prod', '-', guestName, '1'])).code, 1, 'a later release can')
    assert.equal((await bob.corpus(['guest', 'nonsense'])).code, 2)
    const away = { CORPUS_URL: 'http://127.0.0.1:9', CORPUS_TOKEN: 'corpus_x' }
    assert.equal((await bob.corpus(['guest', 'list'], { env: away })).code, 6)
  })

  await step('what is printed for scripts is JSON alone, and what is told for debugging no secret', async () => {
    const debugged = await bob.corpus(['guest', 'list', '--json', '--debug', '--place', 'prod'])
    JSON.parse(debugged.said)
    assert.match(debugged.warned, /GET .*\/api\/v1\/guests/)
    assert.doesNotMatch(debugged.warned, /corpus_[A-Za-z0-9_-]{20}/)
  })

  await step('everything is taken away again', async () => {
    await bob.done('guest_delete', 'prod', guestName)
    assert.deepEqual((await bob.json('guest', 'list', '--place', 'prod')).items, [])
    await bob.done('logout', 'prod')
    await alice.done('node', 'unlink', node.id)
    const zones = await alice.json('zone', 'list')
    await alice.done('zone', 'remove', zones.items.find(({ name }) => name === zone).name)
    const token = /token = "(corpus_[^"]+)"/.exec(known(alice))[1]
    await alice.done('logout')
    assert.ok(!known(alice).includes(token))
    const over = await alice.corpus(['me'], { env: { CORPUS_URL: server.url, CORPUS_TOKEN: token } })
    assert.equal(over.code, 1, 'the token is over too')
    assert.match(over.warned, /corpus login/)
  })
})
