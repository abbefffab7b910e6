// A branch that is seen before it is merged: pushed as preview/NAME by a real git it gets a guest and a name of its own,
// goes with each push, and is gone with the branch, so that nothing of it is left on the node.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
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
const zone = `previews.${lab.lab.zone}`
const guestName = `dev.${zone}`
const domain = `p.${zone}`
const project = '/projects/atlas'

const live = async name => (await lab.httpGet(address, name).catch(() => ({ body: '' }))).body
const page = text => `<!doctype html><html lang="en"><title>Site</title><h1>${text}</h1></html>\n`

test('a branch is deployed on a guest of its own, and gone with the branch', async t => {
  await lab.cleanLab()
  const server = await Server.start('previews')
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
  })
  const step = story(t, visitors, server)
  const measured = {}
  const keys = {}
  let alice, bob, carol, guest, url, repository

  const enters = async login => {
    const visitor = await Visitor.open(browser, server)
    visitors.push(visitor)
    await visitor.enter(login, lab.lab.password)
    keys[login] = await lab.makeKey(path.join(server.folder, login))
    await pages.addKey(visitor, keys[login].line)
    return visitor
  }
  const push = refs => repository.push(url, refs)
  const write = text => writeFileSync(path.join(repository.folder, 'site/index.html'), page(text))
  const card = visitor => visitor.page.locator('#previews')

  await step('a project with a dev that can be pushed to', async () => {
    alice = await enters('alice')
    await pages.createZone(alice, zone)
    await pages.readyNode(alice, NODE)
    bob = await enters('bob')
    carol = await enters('carol')
    guest = await pages.requestGuest(bob, { name: guestName, project: 'atlas', environment: 'dev', size: 'xxsmall' })
    await pages.untilStatus(bob, guest, 'Running')
    await bob.page.goto(project)
    await pages.setUp(bob)
    const html = await pages.untilStatus(bob, `${project}/dev`, 'Nothing live yet', { limit: 120_000 })
    url = /ssh:\/\/git@[^\s<"]+\/dev/.exec(html)[0]
    repository = await Repository.make(path.join(server.folder, 'site'), keys.carol.path, { example: 'static-site', fill: folder => writeFileSync(path.join(folder, 'site/index.html'), page('The main one')) })
    const pushed = await push(['main'])
    assert.equal(pushed.code, 0, pushed.text)
  })

  await step('a project has no previews until a maintainer allows them, and the push says so before its pack', async () => {
    await repository.git('checkout', '--quiet', '-b', 'login')
    write('The login page')
    await repository.commit('A login page')
    const refused = await push(['login:refs/heads/preview/login'])
    assert.notEqual(refused.code, 0, refused.text)
    assert.match(refused.text, /^corpus: project atlas has no previews: a maintainer allows them/m)
    await carol.page.goto(project)
    assert.equal(await card(carol).locator('details').count(), 0, 'a developer sets no rules')
    await bob.page.goto(project)
    await card(bob).getByText('Change what previews there are').click()
    await bob.page.getByLabel('How many at once', { exact: true }).fill('1')
    await pages.press(bob, 'Set what previews there are')
    assert.match(await pages.errorAt(bob, 'domain').innerText(), /need a name/)
    await bob.page.getByLabel('Names below', { exact: true }).fill(domain)
    await bob.page.getByLabel('Size of a guest', { exact: true }).selectOption('xxsmall')
    await pages.press(bob, 'Set what previews there are')
    assert.match(await card(bob).innerText(), /0 of 1/)
    await bob.screenshot('previews-allowed')
  })

  await step('carol pushes the branch: her terminal says where it will be, and there it is', async () => {
    const begin = performance.now()
    const pushed = await push(['login:refs/heads/preview/login'])
    assert.equal(pushed.code, 0, pushed.text)
    assert.match(pushed.text, new RegExp(`^corpus: preview login http://login\\.${domain}/`, 'm'))
    assert.match(pushed.text, /^corpus: follow it \S+\/projects\/atlas--login/m)
    measured.pushed = pushed.ms
    await until('the preview to be live', async () => /The login page/.test(await live(`login.${domain}`)), { limit: 180_000, pause: 500 })
    measured.live = performance.now() - begin
    await carol.page.goto(project)
    assert.match(await card(carol).innerText(), /preview\/login/)
    await carol.screenshot('previews-live')
    await carol.page.goto(`${project}--login`)
    assert.match(await carol.page.locator('main').innerText(), /A preview of atlas/)
    await carol.screenshot('previews-own-page')
    await carol.page.goto('/projects')
    assert.doesNotMatch(await carol.page.locator('main').innerText(), /atlas--login/)
  })

  await step('another push goes there, and one more preview than there may be is refused', async () => {
    write('The second login page')
    await repository.commit('Better')
    const pushed = await push(['login:refs/heads/preview/login'])
    assert.equal(pushed.code, 0, pushed.text)
    await until('the second', async () => /The second login page/.test(await live(`login.${domain}`)), { limit: 60_000, pause: 300 })
    const refused = await push(['login:refs/heads/preview/other'])
    assert.notEqual(refused.code, 0, refused.text)
    assert.match(refused.text, /^corpus: project atlas has 1 of 1 previews/m)
    await carol.page.goto(project)
    await pages.sends(carol, carol.page.getByRole('button', { name: 'Keep login longer', exact: true }))
    assert.match(await card(carol).innerText(), /1 of 1/)
  })

  await step('with its branch the preview goes, and nothing of it is left', async () => {
    const deleted = await push([':refs/heads/preview/login'])
    assert.equal(deleted.code, 0, deleted.text)
    const job = new URL(/the preview is being destroyed: (\S+)/.exec(deleted.text)[1]).pathname
    await until('the preview to be gone', async () => !(await carol.read(project)).html.includes('preview/login'), { limit: 120_000, pause: 300 })
    await pages.jobEnds(carol, job)
    assert.doesNotMatch(await live(`login.${domain}`), /login page/)
    const guests = await lab.onNode(NODE, 'ls /var/lib/lxc')
    assert.ok(!guests.includes(`login.${domain}`), guests)
    assert.deepEqual(await lab.resolved(`login.${domain}`), [])
  })

  await step('the same branch gets a preview again, under the same name', async () => {
    const pushed = await push(['login:refs/heads/preview/login'])
    assert.equal(pushed.code, 0, pushed.text)
    await until('the preview again', async () => /The second login page/.test(await live(`login.${domain}`)), { limit: 180_000, pause: 500 })
    await carol.page.goto(project)
    await pages.confirmIn(carol, card(carol).locator('[data-preview=login]'))
    await pages.jobEnds(carol, pages.here(carol), 'Done', 120_000)
  })

  await step('no error in the log', () => {
    assert.deepEqual(server.errors(), [])
  })

  note('Previews, by a real git push through Corpus', [
    ['the first push of a branch to its end', seconds(measured.pushed)],
    ['the same to the branch live on a guest of its own', seconds(measured.live)],
  ])
})
