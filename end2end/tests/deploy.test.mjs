// Why members come: a push that deploys, proves it, or puts everything back. A real git pushes by a
// real ssh to Corpus, on to the guest; what is live is asked of the node's proxy, as anybody would.
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { Visitor, launch } from '../browser.mjs'
import { Repository } from '../git.mjs'
import * as lab from '../lab.mjs'
import { note, seconds } from '../measures.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const NODE = 'node1'
const address = lab.lab.nodes[NODE]
const zone = `deploy.${lab.lab.zone}`
const guestName = `web.${zone}`
const site = `www.${zone}`
const follower = { name: `more.${zone}`, site: `also.${zone}` }
const project = '/projects/atlas'

const live = async (name = site) => (await lab.httpGet(address, name)).body
const page = text => `<!doctype html><html lang="en"><title>Site</title><h1>${text}</h1></html>\n`

test('a push deploys, proves it, or puts everything back', async t => {
  await lab.cleanLab()
  const server = await Server.start('deploy')
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
  })
  const step = story(t, visitors, server)
  const measured = {}
  const keys = {}
  let alice, bob, carol, dave, guest, shown, url, repository

  const enters = async login => {
    const visitor = await Visitor.open(browser, server)
    visitors.push(visitor)
    await visitor.enter(login, lab.lab.password)
    keys[login] = await lab.makeKey(path.join(server.folder, login))
    await pages.addKey(visitor, keys[login].line)
    return visitor
  }
  const write = (name, text, mode) => {
    const file = path.join(repository.folder, name)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, text)
    if (mode) chmodSync(file, mode)
  }
  const numberOf = async () => {
    const { html } = await carol.read(project)
    return Math.max(0, ...[...html.matchAll(/\/projects\/atlas\/deployments\/(\d+)"/g)].map(match => Number(match[1])))
  }
  // A quick push has ended before it is written down.
  let known = 0
  const arrives = async () => {
    known += 1
    await until(`deployment ${known}`, async () => (await numberOf()) >= known)
    return known
  }
  const deploymentIs = (number, word, limit = 60_000) =>
    pages.untilStatus(carol, `${project}/deployments/${number}`, word, { never: [], limit })

  await step('a node, a guest of staging under a name, and members with keys', async () => {
    alice = await enters('alice')
    await pages.createZone(alice, zone)
    await pages.readyNode(alice, NODE)
    bob = await enters('bob')
    carol = await enters('carol')
    dave = await enters('dave')
    guest = await pages.requestGuest(bob, { name: guestName, project: 'atlas', environment: 'staging', size: 'xxsmall' })
    await pages.untilStatus(bob, guest, 'Running')
    shown = pages.valueIn((await bob.read(guest)).html, 'ssh')
    await pages.attach(bob, guest, site)
    await pages.nameIs(bob, guest, site, 'Attached')
  })

  await step('bob makes the guest the staging environment, and the page shows where to push', async () => {
    await bob.page.goto(project)
    await bob.page.locator('select[name=guest]').selectOption({ index: await bob.page.locator('select[name=guest] option').count() - 1 })
    const begin = performance.now()
    await pages.setUp(bob)
    const html = await pages.untilStatus(bob, `${project}/staging`, 'Nothing live yet', { limit: 120_000, pause: 30 })
    measured.environment = performance.now() - begin
    url = /ssh:\/\/git@[^\s<"]+\/staging/.exec(html)[0]
    await bob.page.goto(project)
    await bob.screenshot('deploy-project-new')
  })

  await step('carol, a developer, pushes a site: it is live, and the push says how it came there', async () => {
    repository = await Repository.make(path.join(server.folder, 'site'), keys.carol.path, { example: 'static-site', fill: folder => writeFileSync(path.join(folder, 'site/index.html'), page('The first')) })
    const pushed = await repository.push(url)
    assert.equal(pushed.code, 0, pushed.text)
    for (const phase of ['archive', 'release-sync', 'install', 'prove']) assert.match(pushed.text, new RegExp(`remote: .*${phase}`), pushed.text)
    assert.match(await live(), /The first/)
    measured.first = pushed.ms
    const number = await arrives()
    await deploymentIs(number, 'Live now')
    await carol.page.goto(`${project}/deployments/${number}`)
    await carol.page.locator('.head .status', { hasText: 'Live' }).waitFor()
    await carol.screenshot('deploy-live')
  })

  await step('a change is live when the push returns', async () => {
    write('site/index.html', page('The second'))
    await repository.commit('The second page')
    const pushed = await repository.push(url)
    assert.equal(pushed.code, 0, pushed.text)
    assert.match(await live(), /The second/)
    measured.change = pushed.ms
    await deploymentIs(await arrives(), 'Live now')
  })

  await step('a failed recipe refuses the push, says why, and what was live is live', async () => {
    write('site/index.html', page('Broken'))
    write('.corpus/20_migrate', '#!/bin/sh\necho "moving the tiles"\necho "relation tile_store does not exist" >&2\nexit 1\n', 0o755)
    await repository.commit('Move tiles to the new store')
    const pushed = await repository.push(url)
    assert.notEqual(pushed.code, 0, pushed.text)
    assert.match(pushed.text, /! \[remote rejected\] main -> main \(.*20_migrate/, pushed.text)
    assert.match(pushed.text, /remote: .*relation tile_store does not exist/)
    assert.match(await live(), /The second/)
    measured.rollback = pushed.ms
    const number = await arrives()
    await deploymentIs(number, `Rolled back to #${number - 1}`)
    await carol.page.goto(`${project}/deployments/${number}`)
    const log = carol.page.locator('.log')
    await log.getByText('relation tile_store does not exist').first().waitFor()
    assert.match(await carol.page.locator('main').innerText(), /Failed in install, 20_migrate/)
    await carol.screenshot('deploy-failed')
    const download = await carol.context.request.get(`${project}/deployments/${number}.json`)
    const detail = await download.json()
    assert.equal(detail.report.fault.recipe, '20_migrate')
    assert.equal(detail.report.state, 'rolled_back')
  })

  await step('the same without the fault is live again', async () => {
    await repository.git('rm', '--quiet', '.corpus/20_migrate')
    write('site/index.html', page('The third'))
    await repository.commit('Without the new store')
    const pushed = await repository.push(url)
    assert.equal(pushed.code, 0, pushed.text)
    assert.match(await live(), /The third/)
    await deploymentIs(await arrives(), 'Live now')
  })

  await step('who may not, and what is not there, is refused alike; a branch is stored and not deployed', async () => {
    const before = await numberOf()
    const stranger = await repository.push(url, ['main'], { key: keys.dave.path })
    const nowhere = await repository.push(url.replace('/atlas/', '/nowhere/'))
    for (const refused of [stranger, nowhere]) assert.notEqual(refused.code, 0, refused.text)
    const words = text => text.split('\n').filter(line => /^corpus: /.test(line)).join().replaceAll(/atlas|nowhere|carol|dave/g, '…')
    assert.equal(words(stranger.text), words(nowhere.text))
    assert.ok(words(stranger.text), stranger.text)
    await lab.makeKey(path.join(server.folder, 'nobody'))
    assert.match((await repository.push(url, ['main'], { key: path.join(server.folder, 'nobody') })).text, /Permission denied/)
    const branch = await repository.push(url, ['main:refs/heads/try'])
    assert.equal(branch.code, 0, branch.text)
    assert.match(branch.text, /stored, not deployed/)
    assert.equal(await numberOf(), before, 'nothing was deployed')
  })

  await step('a push whose server dies goes on, and another server tells how it ended', async () => {
    write('.corpus/20_slow', '#!/bin/sh\nsleep 4\n', 0o755)
    write('site/index.html', page('The fourth'))
    await repository.commit('Takes its time')
    const before = await numberOf()
    const pushing = repository.push(url)
    await until('the deployment to run', async () => (await numberOf()) > before)
    await server.kill()
    assert.notEqual((await pushing).code, 0)
    await server.run()
    await deploymentIs(before + 1, 'Live now')
    assert.match(await live(), /The fourth/)
    // The ref was set on the guest: the same push has nothing to do.
    const again = await repository.push(url)
    assert.equal(again.code, 0, again.text)
    assert.match(again.text, /up-to-date/i)
    for (const visitor of visitors) visitor.messages.splice(0), visitor.faults.splice(0)
  })

  await step('a push to the guest itself does the same, and Corpus learns of it', async () => {
    write('.corpus/20_slow', '#!/bin/sh\ntrue\n', 0o755)
    write('site/index.html', page('The fifth'))
    await repository.commit('By the side door')
    const before = await numberOf()
    const [, port, to] = /-p (\d+) (\S+)/.exec(shown)
    const pushed = await repository.push(`ssh://${to}:${port}/srv/projects/atlas/git/project.git`, ['main'], { key: keys.bob.path })
    assert.equal(pushed.code, 0, pushed.text)
    assert.match(pushed.text, /remote: .*install/)
    assert.match(await live(), /The fifth/)
    await until('Corpus to know', async () => (await numberOf()) === before + 1, { limit: 60_000, pause: 500 })
    await deploymentIs(before + 1, 'Live now')
  })

  await step('a drill breaks it on purpose, and an archive is brought back by the page', async () => {
    const before = await numberOf()
    await carol.page.goto(`${project}/staging/drill`)
    await pages.press(carol, 'Break it and roll back')
    await until('the drill', async () => (await numberOf()) === before + 1)
    await deploymentIs(before + 1, 'Drill passed')
    assert.match(await live(), /The fifth/)
    await carol.page.goto(`${project}/deployments/${before}`)
    await pages.sends(carol, carol.page.getByRole('link', { name: new RegExp(`^Roll back to #${before - 1} `) }))
    await pages.press(carol, new RegExp(`^Roll back to #${before - 1} `))
    await deploymentIs(before + 2, 'Live now')
    assert.match(await live(), /The fourth/)
  })

  const card = () => carol.page.locator('[data-environment=staging]')
  const archives = async () => {
    await carol.page.goto(`${project}/staging`)
    return carol.page.locator('[data-archive]').evaluateAll(all => all.map(one => one.dataset.archive))
  }

  await step('three failed pushes push no release out', async () => {
    await bob.page.goto(`${project}/staging`)
    await bob.page.getByLabel('Set here, as YAML').fill('archives: 3')
    await pages.press(bob, 'Save')
    await until('the settings to be on the guest', async () => {
      const { html } = await bob.read(`${project}/staging`)
      return !html.includes('A job is on it') && /archives<[^]{0,300}>3<[^]{0,200}set here/.test(html)
    }, { limit: 60_000 })
    // A deployment of what is live already is no other release either; it keeps as many as are wanted now.
    await carol.page.goto(project)
    await pages.sends(carol, card().getByRole('button', { name: /^Deploy [0-9a-f]{7} again$/ }))
    await deploymentIs(await numberOf(), 'Live now')
    const kept = await archives()
    assert.equal(kept.length, 3)
    for (const attempt of [1, 2, 3]) {
      write('site/index.html', page(`Broken ${attempt}`))
      write('.corpus/20_migrate', `#!/bin/sh\necho attempt ${attempt}\nexit 1\n`, 0o755)
      await repository.commit(`Attempt ${attempt}`)
      const pushed = await repository.push(url)
      assert.notEqual(pushed.code, 0, pushed.text)
      await until('the deployment', async () => pages.statusIn((await carol.read(`${project}/deployments/${await numberOf()}`)).html)?.startsWith('Rolled back'))
      await until('no other archives', async () => String(await archives()) === String(kept))
    }
    const number = await numberOf()
    await carol.page.goto(`${project}/deployments/${number}`)
    assert.match(await carol.page.locator('main').innerText(), /#\d+ [0-9a-f]{7} is live, as before\./)
    await carol.page.getByRole('link', { name: /^Roll back to #/ }).waitFor()
    await carol.screenshot('deploy-failed-again')
  })

  await step('two clicks on the page of the project roll back, and older releases can be gone back to still', async () => {
    await carol.page.goto(`${project}/staging`)
    const marked = carol.page.locator('[data-archive]', { hasText: 'goes here' })
    assert.match(await marked.innerText(), /By the side door/)
    await carol.screenshot('deploy-archives')
    await carol.page.goto(project)
    await pages.sends(carol, card().getByRole('link', { name: /^Roll back to #/ }))
    assert.match(await carol.page.locator('main').innerText(), /By the side door/)
    await carol.screenshot('deploy-roll-back')
    await pages.press(carol, /^Roll back to #/)
    await deploymentIs(await numberOf(), 'Live now')
    assert.match(await live(), /The fifth/)
    for (const [subject, text] of [['Without the new store', /The third/], ['Takes its time', /The fourth/]]) {
      await carol.page.goto(`${project}/staging`)
      await pages.sends(carol, carol.page.locator('[data-archive]', { hasText: subject }).getByRole('link', { name: /^Restore / }))
      await pages.press(carol, /^Roll back to #/)
      await deploymentIs(await numberOf(), 'Live now')
      assert.match(await live(), text)
    }
    await repository.git('rm', '--quiet', '.corpus/20_migrate')
  })

  await step('another guest follows in the environment and gets what is live', async () => {
    follower.page = await pages.requestGuest(bob, { name: follower.name, project: 'atlas', environment: 'staging', size: 'xxsmall', backing: 'loop' })
    await pages.untilStatus(bob, follower.page, 'Running')
    await pages.attach(bob, follower.page, follower.site)
    await pages.nameIs(bob, follower.page, follower.site, 'Attached')
    await bob.page.goto(project)
    const offered = await bob.page.locator('select[name=guest] option', { hasText: follower.name }).innerText()
    assert.match(offered, /another guest of it/)
    await bob.page.locator('select[name=guest]').selectOption({ label: offered })
    await pages.sends(bob, bob.page.getByRole('button', { name: /^(Add|Set up) / }))
    const there = new RegExp(`data-guest="${follower.name}"((?!</li>)[^])*Live: #`)
    const joined = async () => there.test((await bob.read(`${project}/staging`)).html)
    await until('what is live to come to the follower', joined, { limit: 120_000 })
    assert.match(await live(follower.site), /The fourth/)
    await bob.page.goto(project)
    await bob.screenshot('deploy-two-guests')
  })

  await step('a push goes live on both guests, or is refused and goes live on none', async () => {
    write('site/index.html', page('The sixth'))
    await repository.commit('For both')
    const pushed = await repository.push(url)
    assert.equal(pushed.code, 0, pushed.text)
    assert.match(pushed.text, new RegExp(`remote: .*${follower.name} next`))
    // The leader's end ends the push; the follower hears of it then.
    await deploymentIs(await numberOf(), 'Live now')
    await until('both to be the same', async () => /The sixth/.test(await live()) && /The sixth/.test(await live(follower.site)))
    measured.both = pushed.ms

    write('site/index.html', page('Broken'))
    write('.corpus/20_there', `#!/bin/sh\n[ "$(hostname)" != ${follower.name} ] || exit 7\n`, 0o755)
    await repository.commit('Works on one of them')
    const before = await numberOf()
    const refused = await repository.push(url)
    assert.notEqual(refused.code, 0, refused.text)
    assert.match(refused.text, new RegExp(`followers failed: ${follower.name}: install: 20_there: exit status 7`))
    for (const name of [site, follower.site]) assert.match(await live(name), /The sixth/)
    await deploymentIs(before + 1, `Rolled back to #${before}`)
    await carol.page.goto(`${project}/deployments/${before + 1}`)
    await carol.screenshot('deploy-refused-by-follower')
    await carol.page.getByRole('link', { name: follower.name }).first().click()
    await carol.page.waitForURL(/guest=/)
    assert.match(await carol.page.locator('main').innerText(), /Failed in install, 20_there/)
  })

  await step('the follower leaves the environment', async () => {
    await bob.page.goto(`${project}/staging/remove`)
    await bob.page.locator('main').getByRole('link', { name: follower.name }).first().click()
    await bob.page.getByLabel(`Type ${follower.name} to confirm`, { exact: true }).fill(follower.name)
    await pages.press(bob, 'Remove this guest')
    await pages.jobEnds(bob, pages.here(bob))
    await pages.jobEnds(bob, await pages.destroy(bob, follower.page, follower.name))
  })

  await step('a snapshot brings the guest back, with what was live then', async () => {
    const snapshots = `${guest}/snapshots`
    await carol.page.goto(guest)
    await pages.sends(carol, carol.page.getByRole('link', { name: 'What it was' }))
    await carol.page.getByLabel('What for').fill('before the seventh')
    await pages.press(carol, 'Take a snapshot')
    await carol.page.locator('#live-snapshots .status', { hasText: 'Ready' }).waitFor()
    assert.equal(await carol.page.getByText('Restore', { exact: true }).count(), 0, 'a developer restores')
    const before = await numberOf()
    write('site/index.html', page('The seventh'))
    write('.corpus/20_there', '#!/bin/sh\n', 0o755)
    await repository.commit('After the snapshot')
    const pushed = await repository.push(url)
    assert.equal(pushed.code, 0, pushed.text)
    assert.match(await live(), /The seventh/)
    await deploymentIs(before + 1, 'Live now')
    await bob.page.goto(snapshots)
    await bob.page.getByLabel('Restore before the seventh').click()
    await bob.screenshot('snapshots')
    const begin = performance.now()
    await pages.press(bob, 'Yes, restore')
    await until('the guest to be what it was', async () => /The sixth/.test(await live()), { pause: 30 })
    await bob.page.goto(snapshots)
    await bob.page.locator('#live-snapshots .status', { hasText: 'Ready' }).waitFor()
    measured.restore = performance.now() - begin
    await deploymentIs(before + 1, 'Was live')
    await repository.git('commit', '--quiet', '--allow-empty', '-m', 'Once more')
    const again = await repository.push(url)
    assert.equal(again.code, 0, again.text)
    assert.match(await live(), /The seventh/)
    await bob.page.goto(snapshots)
    await bob.page.getByLabel('Delete before the seventh').click()
    await pages.press(bob, 'Yes, delete')
    await bob.page.getByText('There is none').waitFor()
  })

  await step('a backup does, from elsewhere than its node', async () => {
    const backups = `${guest}/backups`
    await carol.page.goto(guest)
    await pages.sends(carol, carol.page.getByRole('link', { name: 'What is left of it elsewhere' }))
    await carol.page.getByLabel('What for').fill('before the eighth')
    await pages.press(carol, 'Take a backup')
    await carol.page.locator('#live-backups .status', { hasText: 'Ready' }).waitFor({ timeout: 120_000 })
    assert.equal(await carol.page.getByText('Restore', { exact: true }).count(), 0, 'a developer restores')
    await pages.sends(carol, carol.page.getByRole('link', { name: 'Files of before the eighth' }))
    await pages.sends(carol, carol.page.getByRole('link', { name: 'etc/', exact: true }))
    await pages.sends(carol, carol.page.getByRole('link', { name: 'ssh/', exact: true }))
    await carol.page.getByLabel('Folders').getByText('ssh', { exact: true }).waitFor()
    const [fetched] = await Promise.all([carol.page.waitForEvent('download'), carol.page.getByRole('button', { name: 'Fetch sshd_config', exact: true }).click()])
    assert.equal(fetched.suggestedFilename(), 'sshd_config')
    assert.match(readFileSync(await fetched.path(), 'utf8'), /^Subsystem/m)
    // Nobody looks at what is deleted below.
    await carol.page.goto(guest)
    write('site/index.html', page('The eighth'))
    await repository.commit('After the backup')
    const pushed = await repository.push(url)
    assert.equal(pushed.code, 0, pushed.text)
    assert.match(await live(), /The eighth/)
    await bob.page.goto(backups)
    await bob.page.getByLabel('Restore before the eighth').click()
    await bob.screenshot('backups')
    await pages.press(bob, 'Yes, restore')
    await until('the guest to be what it was', async () => /The seventh/.test(await live()), { pause: 30, limit: 120_000 })
    await bob.page.goto(guest)
    await pages.untilStatus(bob, guest, 'Running')
    await bob.page.goto(backups)
    await bob.page.getByLabel('One is taken').selectOption({ label: 'Each day' })
    await bob.page.getByLabel('So many are kept').fill('3')
    await pages.press(bob, 'Save')
    await bob.page.getByText('The next one').waitFor()
    await bob.page.getByLabel('One is taken').selectOption({ label: 'Never' })
    await pages.press(bob, 'Save')
    await bob.page.getByText('The next one').waitFor({ state: 'detached' })
    await bob.page.getByLabel('Delete before the eighth').click()
    await pages.press(bob, 'Yes, delete')
    await bob.page.getByText('before the eighth').waitFor({ state: 'detached' })
  })

  await step('a destroyed guest is refused while the environment stands on it; removed, both go', async () => {
    await bob.page.goto(`${project}/staging/remove`)
    await bob.page.getByLabel('Type atlas/staging to confirm', { exact: true }).fill('atlas/staging')
    await pages.press(bob, 'Remove this environment')
    await pages.jobEnds(bob, pages.here(bob))
    const job = await pages.destroy(bob, guest, guestName)
    await pages.jobEnds(bob, job)
  })

  await step('no error in the log, no secret in it', () => {
    assert.deepEqual(server.errors(), [])
    for (const key of Object.values(keys)) assert.ok(!server.text().includes(key.private.split('\n')[1]))
    assert.ok(readFileSync(server.log, 'utf8').length > 0)
  })

  note('Projects, by a real git push through Corpus', [
    ['environment asked for to ready to be pushed to', seconds(measured.environment)],
    ['first push of a static site to live', seconds(measured.first)],
    ['a changed page, pushed to live', seconds(measured.change)],
    ['a failing push to its refusal, all put back', seconds(measured.rollback)],
    ['a changed page, pushed to live on two guests', seconds(measured.both)],
    ['a snapshot asked for to be restored to its guest serving again', seconds(measured.restore)],
  ])
})
