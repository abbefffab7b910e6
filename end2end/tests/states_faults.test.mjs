// What goes wrong with states: they say more than anybody reads, they hang; their master is slow, has another time than its
// minions, was brought back from yesterday, or was lost with its key. Nothing hangs for ever, and nobody types anything on a guest.
import assert from 'node:assert/strict'
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Session } from '../hostile/session.mjs'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import { note, seconds } from '../measures.mjs'
import * as pages from '../pages.mjs'
import { preload } from '../preload.mjs'
import { run, timed, until } from '../process.mjs'
import { SaltMaster } from '../salt-master.mjs'
import { Server, freePort } from '../server.mjs'
import { story } from '../steps.mjs'

const NODE = 'node1'
const zone = lab.lab.zone
const [alone, self, far, late] = ['alone', 'self', 'far', 'late'].map(name => `${name}.${zone}`)
const ENDED = ['done', 'undone', 'stuck', 'abandoned']
const MB = 1e6
// Less than the day after which Salt makes new keys of sessions: files here have the time of the kernel, which is not the master's.
const HOURS = 12 * 3600

test('states that say too much or hang, and masters that are slow, of another time, or lost', async t => {
  await lab.cleanLab()
  const address = lab.lab.env.CORPUS_LAB_GATEWAY
  const server = await Server.start('states_faults', { salt_master: { address, publish_port: await freePort(), request_port: await freePort() } })
  const browser = await launch()
  const visitors = []
  const folder = path.join(server.data, 'salt')
  const kept = path.join(folder, 'yesterday')
  let master
  t.after(async () => {
    await browser.close()
    await master?.end()
    await server.stop()
  })
  const step = story(t, visitors, server)
  const [bob, ops] = [new Session(server.url), new Session(server.url)]
  const guests = {}
  const rows = []

  const json = async (who, place, { method = 'GET', body } = {}) => {
    const answer = await who.ask(`/api/v1${place}`, { method, file: body && JSON.stringify(body), headers: body && { 'content-type': 'application/json' } })
    assert.ok(answer.status < 300, `${method} ${place}: ${answer.status} ${answer.html}`)
    return answer.html ? JSON.parse(answer.html) : undefined
  }
  const ended = job => until('a job to end', async () => {
    const now = await json(bob, `/jobs/${job}`)
    return ENDED.includes(now.line.state) && now
  }, { limit: 300_000, pause: 200 })
  const request = async (name, mode) => {
    const [took, state] = await timed(async () => {
      const { job } = await json(bob, '/guests', { method: 'POST', body: { project: 'atlas', environment: 'dev', name, size: 'small', mode } })
      return (await ended(job)).line.state
    })
    assert.equal(state, 'done')
    rows.push([`a guest requested with ${mode}, up to its first states`, seconds(took)])
    guests[name] = (await json(bob, `/guests?q=${name}`)).items[0].id
  }
  const begun = async name => (await json(bob, `/guests/${guests[name]}/states`, { method: 'POST', body: { test: false } })).job
  const applied = async name => ended(await begun(name))
  const last = async name => (await json(bob, `/guests/${guests[name]}/states`)).last
  const inside = (guest, script) => lab.onNode(NODE, `lxc-attach -n ${guest} -- sh -s`, { input: script, timeout: 120_000 })
  const own = sls => inside(alone, `mkdir -p /srv/salt; cat >/srv/salt/top.sls <<'END'\nbase:\n  '*': [own]\nEND\ncat >/srv/salt/own.sls <<'END'\n${sls}END\n`)
  const answers = async names => assert.deepEqual(Object.keys(await master.ask('test.ping', 20)).sort(), names)

  await step('guests of each mode', async () => {
    const alice = await (await Visitor.open(browser, server)).enter('alice', lab.lab.password)
    visitors.push(alice)
    await pages.readyNode(alice, NODE)
    await bob.enter('bob', lab.lab.password)
    await ops.enter('alice', lab.lab.password)
    mkdirSync(path.join(folder, 'states'), { recursive: true })
    writeFileSync(path.join(folder, 'states/top.sls'), "base:\n  '*': [ours]\n")
    writeFileSync(path.join(folder, 'states/ours.sls'), '/etc/ours:\n  file.managed:\n    - contents: ours\n')
    master = new SaltMaster(server)
    await until('the master', async () => (await json(ops, '/salt-masters')).items.length, { limit: 120_000, pause: 500 })
    await request(alone, 'masterless')
    await request(self, 'salt')
    await request(far, 'mastersalt')
  })

  await step('what says 50 MB of every kind of byte is told in a few', async () => {
    // By what it prints, and by what Salt says of it.
    await own(`/srv/talk.py:
  file.managed:
    - contents: |
        import os
        piece = ('\\U0001f980 \\u00fc \\u202e \\x1b[31m \\x00 ' * 40).encode() + bytes(range(256))
        for _ in range(50_000_000 // len(piece)): os.write(1, piece)
talks:
  cmd.run:
    - name: python3 /srv/talk.py
`)
    const before = server.resident()
    const [took, job] = await timed(() => applied(alone))
    const { ran, failed, states } = await last(alone)
    assert.deepEqual([job.line.state, ran, failed], ['done', 2, 0], JSON.stringify(states).slice(0, 1000))
    assert.ok(states.every(state => state.comment.length <= 1000))
    await own(`tells:
  test.configurable_test_state:
    - result: false
    - changes: false
    - comment: "{{ '\\U0001f980\\u00fc\\u202e' * 6000000 }}"
`)
    const told = await applied(alone)
    const said = (await last(alone)).states[0].comment
    assert.equal(told.line.state, 'undone')
    assert.ok(said.startsWith('\u{1f980}\u00fc') && said.length <= 2000, `${said.length}`)
    assert.ok(JSON.stringify(told).length < 100_000)
    assert.ok(server.resident() - before < 100 * MB, 'nor does the server keep them')
    rows.push(['states that print 50 MB', seconds(took)])
    const page = await bob.read(`/guests/${guests[alone]}/states`)
    assert.equal(page.status, 200)
  })

  await step('one that hangs is ended by who cancels its job', async () => {
    await own('hangs:\n  cmd.run:\n    - name: sleep 98765\n')
    const job = await begun(alone)
    const hangs = async () => (await inside(alone, 'pgrep -f "^sleep 98765" || true')).trim()
    await until('it to hang', hangs, { limit: 60_000, pause: 300 })
    await json(bob, `/jobs/${job}/cancel`, { method: 'POST' })
    const [took, now] = await timed(() => ended(job))
    assert.equal(now.line.state, 'undone')
    await until('nothing to be left of it', async () => !await hangs(), { limit: 20_000 })
    rows.push(['a hung state, from the cancel to its end', seconds(took)])
    await own('/etc/own:\n  file.managed:\n    - contents: own\n')
    assert.equal((await applied(alone)).line.state, 'done')
  })

  await step('a master that stands still for a while is waited for, and one that does for long is told', async () => {
    await answers([far])
    await master.still('SIGSTOP')
    const waits = begun(far)
    await sleep(10_000)
    await master.still('SIGCONT')
    assert.equal((await ended(await waits)).line.state, 'done')
    await master.still('SIGSTOP')
    const [took, job] = await timed(() => applied(far))
    await master.still('SIGCONT')
    assert.equal(job.line.state, 'undone')
    assert.match(JSON.stringify(job), /does not answer/)
    rows.push(['a master that stands still is told after', seconds(took)])
    assert.equal((await applied(far)).line.state, 'done')
  })

  // One that is earlier can't be tried so: the kernel would take its waits for over.
  await step('a master whose clock is hours ahead is followed', async () => {
    await master.end()
    master = new SaltMaster(server, { LD_PRELOAD: preload('other-clock'), OTHER_CLOCK_S: `${HOURS}` })
    await until('it to be applied', async () => (await applied(far)).line.state === 'done', { limit: 120_000, pause: 1000 })
    assert.equal((await json(ops, '/salt-masters')).items[0].is_there, true)
    await until('all to answer', async () => (await answers([far])) ?? true, { limit: 120_000, pause: 1000 })
  })

  await step('one that was brought back from yesterday knows those of today', async () => {
    await master.end()
    await run('cp', ['-a', master.folder, kept])
    master = new SaltMaster(server)
    await request(late, 'mastersalt')
    const { job } = await json(bob, `/guests/${guests[far]}`, { method: 'DELETE' })
    assert.equal((await ended(job)).line.state, 'done')
    await master.end()
    rmSync(master.folder, { recursive: true })
    renameSync(kept, master.folder)
    assert.deepEqual(master.minions(), [far], 'it is that of yesterday')
    master = new SaltMaster(server)
    // Salt never runs with the keys of yesterday: the guest that is gone could enter by its own.
    await until('Salt to run', () => master.salt(), { limit: 60_000, pause: 10 })
    assert.deepEqual(master.minions(), [late])
    assert.equal((await applied(late)).line.state, 'done')
    await until('all to answer', async () => (await answers([late])) ?? true, { limit: 120_000, pause: 1000 })
  })

  await step('one that was lost with its key is followed anew', async () => {
    await master.end()
    rmSync(master.folder, { recursive: true })
    master = new SaltMaster(server)
    await until('it to be applied', async () => (await applied(late)).line.state === 'done', { limit: 180_000, pause: 1000 })
    const [took] = await timed(() => until('all to answer', async () => (await answers([late])) ?? true, { limit: 120_000, pause: 1000 }))
    rows.push(['a master with another key, from states that are applied to a minion that listens', seconds(took)])
  })

  note('Faults of states', rows)
})
