// The machine of the controller is lost, and brought back from the backup that an operator asked for: nodes and guests go on
// meanwhile, are known again afterwards, and what became of them since is told.
import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { violations } from '../look.mjs'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import { note, seconds } from '../measures.mjs'
import * as pages from '../pages.mjs'
import { run, until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const zone = `recovery.${lab.lab.zone}`
const names = { kept: `kept.${zone}`, gone: `gone.${zone}`, later: `later.${zone}` }
const NODE = 'node1'

const plain = html => html.replace(/<[^>]*>/g, '').replace(/\s+/g, ' ')

test('a controller that is lost is brought back', async t => {
  await lab.cleanLab()
  const place = path.join(process.env.TMPDIR ?? '/tmp', `corpus-recovery-${process.pid}`)
  const password = `${place}.password`
  writeFileSync(password, 'correct horse battery staple\n', { mode: 0o600 })
  const server = await Server.start('recovery', { backup: { place, password_file: password, every_hours: 0 } })
  const config = path.join(server.folder, 'corpus.toml')
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
    for (const left of [place, password]) rmSync(left, { recursive: true, force: true })
  })
  const step = story(t, visitors, server)
  let alice, bob, node, key, shown
  const guests = {}

  const enters = async login => {
    const visitor = await Visitor.open(browser, server)
    visitors.push(visitor)
    return visitor.enter(login, lab.lab.password)
  }
  const makes = async which => {
    guests[which] = await pages.requestGuest(bob, { name: names[which], project: 'atlas', environment: 'dev', size: 'xxsmall' })
    await pages.untilStatus(bob, guests[which], 'Running')
  }
  const program = args => run(server.process.spawnfile, args, { env: { PATH: process.env.PATH } })

  await step('a node, a guest that one enters, and one more', async () => {
    alice = await enters('alice')
    bob = await enters('bob')
    node = await pages.readyNode(alice, NODE)
    await pages.createZone(alice, zone)
    key = await lab.makeKey(path.join(server.folder, 'bob'))
    await pages.addKey(bob, key.line)
    await makes('kept')
    await makes('gone')
    shown = await until('the ssh command', async () => pages.valueIn((await bob.read(guests.kept)).html, 'ssh'))
    await until('a login', () => lab.pasted(shown, key.path, 'true').then(() => true))
  })

  await step('an operator has a backup taken', async () => {
    await alice.page.goto('/controller-backups')
    assert.match(plain((await alice.read('/controller-backups')).html), /None was taken yet/)
    await pages.press(alice, 'Back up now')
    await alice.page.locator('#live-backups .status', { hasText: 'Done' }).waitFor()
    assert.deepEqual(await violations(alice.page), [])
    await alice.screenshot('backups')
    assert.equal((await bob.read('/controller-backups')).status, 403)
    assert.doesNotMatch(readFileSync(server.log, 'utf8'), /correct horse/)
  })

  await step('what is done after it', async () => {
    await pages.jobEnds(bob, await pages.destroy(bob, guests.gone, names.gone))
    await makes('later')
  })

  await step('the machine of the controller is lost, and guests go on', async () => {
    for (const visitor of visitors.splice(0)) {
      await visitor.page.goto('about:blank')
      visitor.check()
      await visitor.close()
    }
    await server.kill()
    const data = path.join(server.data, 'postgres', 'data', 'postmaster.pid')
    const postmaster = Number(readFileSync(data, 'utf8').split('\n')[0])
    process.kill(postmaster, 'SIGQUIT')
    await until('its PostgreSQL to be gone', () => !existsSync(`/proc/${postmaster}`))
    rmSync(path.join(server.data, 'postgres'), { recursive: true, force: true })
    for (const file of [config, path.join(server.folder, 'seal.key')]) rmSync(file)
    await lab.pasted(shown, key.path, 'true')
  })

  await step('one command brings it back, and another starts it', async () => {
    const began = performance.now()
    const said = await program(['restore', '--from', place, '--password-file', password])
    assert.match(said, /corpus\.toml/)
    const restored = performance.now() - began
    await server.run()
    alice = await enters('alice')
    bob = await enters('bob')
    await until('the node to be read', async () => {
      const { html } = await alice.read(node)
      return pages.statusIn(html) === 'Ready' && /Foreign|Not ours|no guest stands for/i.test(plain(html)) && html
    }, { limit: 120_000 })
    note('A controller that was lost', [
      ['brought back from its backup', seconds(restored)],
      ['until its node is read again and told what differs', seconds(performance.now() - began)],
    ])
    const { html } = await alice.read('/controller-backups')
    assert.match(plain(html), /brought back from a backup/)
  })

  await step('what it knew is as it was, and what became of it since is told', async () => {
    await pages.untilStatus(bob, guests.kept, 'Running')
    const drift = plain((await alice.read(node)).html)
    assert.ok(drift.includes(names.later), `the guest that was made after: ${drift}`)
    assert.ok(drift.includes(names.gone), `the guest that was destroyed after: ${drift}`)
    await alice.page.goto(node)
    await alice.screenshot('brought-back')
    await lab.pasted(shown, key.path, 'true')
  })

  await step('a guest that it does not know keeps its files: nobody gets them with its name', async () => {
    await pages.fillRequest(bob, { name: names.later, project: 'atlas', environment: 'dev', size: 'xxsmall' })
    await pages.press(bob, 'Request the guest')
    await bob.page.locator('.head').getByText('Not created').first().waitFor({ timeout: 60_000 })
    assert.match(await bob.page.locator('.banner.fail').innerText(), /another guest .* is on the node, which this controller does not know/)
    assert.match(await lab.onNode(NODE, 'lxc-ls -1 --running'), new RegExp(names.later))
  })

  await step('it takes up its work', async () => {
    await pages.power(bob, guests.kept, 'Restart')
    await pages.untilStatus(bob, guests.kept, 'Running')
    await until('a login', () => lab.pasted(shown, key.path, 'true').then(() => true))
    await pages.jobEnds(bob, await pages.destroy(bob, guests.gone, names.gone))
    assert.match(await lab.onNode(NODE, 'lxc-ls -1 --running'), new RegExp(names.later), 'what nobody asked for stays')
    await pages.jobEnds(bob, await pages.destroy(bob, guests.kept, names.kept))
  })
})
