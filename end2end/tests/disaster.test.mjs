// A controller and one of its two nodes are lost, at once. Three commands bring all back: the controller from its backup, its
// server, and the guests of the lost node from theirs, at the node that is left. Each guest is proven: entered, its site
// answers where its name leads, and the next push goes live. Then the lost node comes back, and nothing runs twice.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { Visitor, launch } from '../browser.mjs'
import { Repository } from '../git.mjs'
import * as lab from '../lab.mjs'
import { violations } from '../look.mjs'
import { note, seconds } from '../measures.mjs'
import * as pages from '../pages.mjs'
import { PATIENCE, run, until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const program = fileURLToPath(new URL('../../target/corpus/corpus', import.meta.url))
const zone = `disaster.${lab.lab.zone}`
const [home, lost, site] = [`home.${zone}`, `lost.${zone}`, `shop.${zone}`]
const { node1, node2 } = lab.lab.nodes
const project = '/projects/atlas'
const environment = `${project}/staging`
const page = word => `<!doctype html><html><title>${word}</title><p>${word}</p></html>`

test('a controller and a node that are lost stand again by three commands', async t => {
  await lab.cleanLab()
  const place = path.join(process.env.TMPDIR ?? '/tmp', `corpus-disaster-${process.pid}`)
  const [password, guestBackups] = [`${place}.password`, `${place}-guests`]
  writeFileSync(password, 'correct horse battery staple\n', { mode: 0o600 })
  const server = await Server.start('disaster', { '': { guest_backups: guestBackups }, backup: { place, password_file: password, every_hours: 0 } })
  const config = path.join(server.folder, 'corpus.toml')
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
    await lab.fault('heal', 'node2')
    for (const left of [place, password, guestBackups]) rmSync(left, { recursive: true, force: true })
  })
  const step = story(t, visitors, server)
  const shown = {}
  const guests = {}
  let alice, bob, key, repository, first, second, url

  const enters = async login => {
    const visitor = await Visitor.open(browser, server)
    visitors.push(visitor)
    return visitor.enter(login, lab.lab.password)
  }
  // Operators at a terminal, by the file of old.
  const folder = path.join(server.folder, 'alice')
  mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(folder, '.makinastates.conf'), `prod:\n  url: ${server.url}\n  id: alice\n  password ${lab.lab.password}\n`)
  const corpus = (...args) => new Promise((resolve, reject) => {
    execFile(program, [...args, '--place', 'prod'], { env: { HOME: folder, PATH: process.env.PATH }, timeout: 60_000 },
      (error, said, warned) => (error ? reject(new Error(`corpus ${args.join(' ')}: ${said}${warned}`)) : resolve(said)))
  })
  const ask = async (...args) => JSON.parse(await corpus(...args, '--json'))
  const serves = async (address, word) => until(`${address} to serve ${word}`,
    async () => (await lab.httpGet(address, site).catch(() => ({ body: '' }))).body.includes(word), { limit: 60_000 })
  const leadsTo = address => until(`${site} to lead to ${address}`,
    async () => (await lab.resolved(site)).join() === address, { limit: PATIENCE, pause: 300 })

  await step('a guest on each of two nodes, a project live on the second, and backups of both', async () => {
    alice = await enters('alice')
    bob = await enters('bob')
    await pages.createZone(alice, zone)
    key = await lab.makeKey(path.join(server.folder, 'bob'))
    await pages.addKey(bob, key.line)
    for (const [name, at] of [[home, 'node1'], [lost, 'node2']]) {
      first = second
      second = (await pages.readyNode(alice, at)).split('/').at(-1)
      guests[name] = await pages.requestGuest(bob, { name, project: 'atlas', environment: 'staging', size: 'xxsmall', node: second })
      await pages.untilStatus(bob, guests[name], 'Running')
    }
    await bob.page.goto(project)
    const option = bob.page.locator('select[name=guest] option', { hasText: lost })
    await bob.page.locator('select[name=guest]').selectOption({ label: await option.innerText() })
    await pages.setUp(bob)
    url = await until('the address of staging', async () => /ssh:\/\/git@[^\s<"]+\/staging/.exec((await bob.read(environment)).html)?.[0], { limit: 120_000 })
    await pages.untilStatus(bob, environment, 'Nothing live yet', { limit: 120_000 })
    repository = await Repository.make(path.join(server.folder, 'site'), key.path, {
      example: 'static-site',
      fill: inside => writeFileSync(path.join(inside, 'site/index.html'), page('One')),
    })
    const pushed = await repository.push(url)
    assert.equal(pushed.code, 0, pushed.text)
    await pages.attach(bob, guests[lost], site)
    await pages.nameIs(bob, guests[lost], site, 'Attached')
    await leadsTo(node2)
    await serves(node2, 'One')
    await bob.page.goto(`${guests[lost]}/backups`)
    await pages.press(bob, 'Take a backup')
    await until('the backup', async () => (await ask('backup', 'list', lost)).items[0]?.state === 'ready', { limit: 180_000, pause: 500 })
    await alice.page.goto('/controller-backups')
    await pages.press(alice, 'Back up now')
    await alice.page.locator('#live-backups .status', { hasText: 'Done' }).waitFor()
  })

  await step('the machine of the controller is lost, and a node with it', async () => {
    for (const visitor of visitors.splice(0)) {
      await visitor.page.goto('about:blank')
      visitor.check()
      await visitor.close()
    }
    await server.kill()
    const postmaster = Number(readFileSync(path.join(server.data, 'postgres', 'data', 'postmaster.pid'), 'utf8').split('\n')[0])
    process.kill(postmaster, 'SIGQUIT')
    await until('its PostgreSQL to be gone', () => !existsSync(`/proc/${postmaster}`))
    rmSync(path.join(server.data, 'postgres'), { recursive: true, force: true })
    for (const file of [config, path.join(server.folder, 'seal.key')]) rmSync(file)
    await lab.fault('cut', 'node2')
  })

  await step('three commands', async () => {
    const began = performance.now()
    await run(server.process.spawnfile, ['restore', '--from', place, '--password-file', password], { env: { PATH: process.env.PATH } })
    const restored = performance.now() - began
    await server.run()
    const started = performance.now() - began
    await assert.rejects(corpus('node', 'empty', node2, '--how', 'backup'), /is off first|answers/)
    // It says "answers" until the server has found out that nobody does.
    await until('the node to be known as lost', () => corpus('node', 'empty', node2, '--how', 'backup', '--off', 'true').then(() => true), { limit: 60_000, pause: 1000 })
    const asked = performance.now() - began
    const all = await until('its guests to be elsewhere', async () => {
      const leaving = await ask('node', 'leaving', node2)
      assert.equal(leaving.failed, 0, JSON.stringify(leaving))
      return leaving.guests === 0 && leaving
    }, { limit: 180_000, pause: 500 })
    assert.equal(all.waiting + all.going, 0)
    note('A controller and a node that were lost', [
      ['the controller brought back from its backup', seconds(restored)],
      ['its server ready', seconds(started)],
      ['known that the node is lost, and asked for its guests', seconds(asked)],
      ['its guest, with a project, entered at the other node', seconds(performance.now() - began)],
    ])
  })

  await step('every guest is proven', async () => {
    alice = await enters('alice')
    bob = await enters('bob')
    for (const name of [home, lost]) {
      await pages.untilStatus(bob, guests[name], 'Running')
      shown[name] = await until('the ssh command', async () => pages.valueIn((await bob.read(guests[name])).html, 'ssh'))
      assert.ok(shown[name].includes(node1), shown[name])
      await until('a login', () => lab.pasted(shown[name], key.path, 'true').then(() => true))
    }
    await leadsTo(node1)
    await serves(node1, 'One')
    writeFileSync(path.join(repository.folder, 'site/index.html'), page('Two'))
    await repository.commit('The second')
    const pushed = await repository.push(url)
    assert.equal(pushed.code, 0, pushed.text)
    await serves(node1, 'Two')
    await pages.untilStatus(bob, environment, 'Live now')
  })

  await step('the lost node comes back, and nothing runs twice', async () => {
    assert.match(await ask('node', 'left-behind', node2).then(left => left.items[0].name), /^lost\./)
    await alice.page.goto(`/nodes/${second}/empty`)
    await alice.screenshot('left-behind')
    assert.deepEqual(await violations(alice.page), [])
    await lab.fault('heal', 'node2')
    await until('it to be stopped there', async () => (await ask('node', 'left-behind', node2)).items[0].stopped_at, { limit: 60_000, pause: 500 })
    assert.match(await lab.onNode('node2', `lxc-info -sHn ${lost}; grep ^lxc.start.auto /var/lib/lxc/${lost}/config`), /STOPPED\s+lxc.start.auto = 0/)
    await serves(node1, 'Two')
  })

  await step('what was left there is removed, and the node takes guests again', async () => {
    await alice.page.goto(`/nodes/${second}/empty`)
    await pages.confirmIn(alice, alice.page.locator('#left tr').filter({ hasText: lost }).first())
    await until('nothing to be left', async () => (await ask('node', 'left-behind', node2)).items.length === 0, { limit: 60_000, pause: 500 })
    assert.equal((await lab.onNode('node2', 'lxc-ls')).trim(), '')
    await corpus('node', 'resume', node2)
  })

  await step('the other node is emptied by a click, its guests running', async () => {
    const began = performance.now()
    await alice.page.goto(`/nodes/${first}/empty`)
    await pages.press(alice, 'Move all guests')
    await until('its guests to be elsewhere', async () => {
      const leaving = await ask('node', 'leaving', node1)
      assert.equal(leaving.failed, 0, JSON.stringify(leaving))
      return leaving.guests === 0
    }, { limit: 240_000, pause: 500 })
    note('A node that was emptied', [['its two guests at another node, entered there', seconds(performance.now() - began)]])
    for (const name of [home, lost]) {
      await pages.untilStatus(bob, guests[name], 'Running')
      const command = await until('the ssh command', async () => pages.valueIn((await bob.read(guests[name])).html, 'ssh'))
      assert.ok(command.includes(node2), command)
      await until('a login', () => lab.pasted(command, key.path, 'true').then(() => true))
    }
    await leadsTo(node2)
    await serves(node2, 'Two')
    assert.equal((await lab.onNode('node1', 'lxc-ls')).trim(), '')
  })
})
