// Finding things again, and doing something with several of them: filters and views of lists, guests that are stopped
// and destroyed by one question, a name that is attached from the list of names, and what a size is.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import * as look from '../look.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const NODE = 'node1'
const zone = `finding.${lab.lab.zone}`
const names = ['apple', 'berry', 'cherry'].map(word => `${word}.${zone}`)
const site = `www.${zone}`

test('things are found, and done with several at once', async t => {
  await lab.cleanLab()
  const server = await Server.start('finding')
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
  })
  const step = story(t, visitors, server)
  const enters = async (login, options) => {
    const visitor = await Visitor.open(browser, server, options)
    visitors.push(visitor)
    return visitor.enter(login, lab.lab.password)
  }
  const field = (visitor, label) => visitor.page.getByLabel(label, { exact: true })
  const rows = (visitor, table) => visitor.page.locator(`table[aria-label="${table}"] tbody tr`)
  const link = (visitor, name) => visitor.page.getByRole('link', { name, exact: true })
  const choose = async (visitor, all) => {
    await visitor.page.goto('/guests')
    for (const name of all) await field(visitor, `Choose ${name}`).check()
  }
  let alice, bob, plain, node

  await step('the request of a guest begins at its project, and says what each size is and where there is room', async () => {
    alice = await enters('alice')
    await pages.createZone(alice, zone)
    node = await pages.readyNode(alice, NODE)
    bob = await enters('bob')
    const { page } = bob
    // A node takes guests once it was read.
    await until('the form', async () => {
      await page.goto('/projects/atlas')
      await pages.sends(bob, link(bob, 'Request a guest').first())
      return await page.locator('[name=name]').count()
    }, { limit: 60_000, pause: 500 })
    const begun = await Promise.all(['project', 'environment'].map(name => page.locator(`[name=${name}]`).inputValue()))
    assert.deepEqual(begun, ['atlas', 'dev'])
    assert.match(await page.locator('option[value=xsmall]').textContent(), /^3 GB, 768 MiB memory, 1 CPU \(xsmall\)$/)
    await page.getByText('Sizes, and which nodes have room for each').click()
    const smallest = rows(bob, 'Sizes').first()
    assert.match(await smallest.innerText(), new RegExp(`xxxsmall\\s+0\\.5 GB\\s+256 MiB\\s+0\\.5\\s+${lab.lab.nodes[NODE]}`))
    await look.judged(bob, 'sizes')
    for (const name of names) {
      const guest = await pages.requestGuest(bob, { name, project: 'atlas', environment: 'dev', size: 'xxsmall' })
      await pages.untilStatus(bob, guest, 'Running')
    }
    await page.goto('/guests')
    assert.match(await rows(bob, 'Guests').first().innerText(), /1 GB\s+512 MiB memory/)
  })

  await step('jobs and the audit are read from either end, and jobs by how long they took', async () => {
    const { page } = bob
    const order = async (visitor, place, table) => {
      await visitor.page.goto(place)
      return rows(visitor, table).allInnerTexts().then(all => all.map(text => text.split(/\s{2,}|\t/)[0]))
    }
    const newest = await order(bob, '/jobs', 'Jobs')
    await pages.sends(bob, link(bob, 'Oldest first'))
    await page.waitForURL(/sort=oldest/)
    assert.deepEqual(await order(bob, '/jobs?sort=oldest', 'Jobs'), newest.toReversed())
    await pages.sends(bob, link(bob, 'Longest first'))
    await page.waitForURL(/sort=longest/)
    await until('all jobs, which are over', async () => (await order(bob, '/jobs?sort=longest', 'Jobs')).length === newest.length)
    const audit = await order(alice, '/audit', 'Audit')
    assert.notEqual((await order(alice, '/audit?sort=oldest', 'Audit'))[0], audit[0])
  })

  await step('jobs are found by what they are about, whatever their state', async () => {
    const { page } = bob
    await page.goto('/jobs?state=done')
    await field(bob, 'About').fill('apple')
    await field(bob, 'Kind').selectOption('guest_create')
    await pages.press(bob, 'Filter')
    await page.waitForURL(/state=done/)
    assert.deepEqual(await rows(bob, 'Jobs').allInnerTexts().then(all => all.map(text => text.split(/\s{2,}|\t/)[0])), [`Create guest ${names[0]} on ${lab.lab.nodes[NODE]}`])
    await pages.sends(bob, link(bob, 'Undone'))
    await page.getByText('No job matches').waitFor()
    assert.equal(await field(bob, 'About').inputValue(), 'apple', 'a tab keeps the filters')
    await pages.sends(bob, link(bob, 'All'))
    await until('the one job', async () => await rows(bob, 'Jobs').count() === 1)
    await pages.sends(bob, link(bob, 'Show all'))
    await until('all jobs', async () => await rows(bob, 'Jobs').count() >= 3)
    // The console tells of it when it likes.
    bob.expected.add(422)
    await field(bob, 'Of project').fill('No Project')
    await pages.press(bob, 'Filter')
    await pages.errorAt(bob, 'project').waitFor()
    assert.equal(await field(bob, 'Of project').inputValue(), 'No Project')
  })

  await step('the audit is found by who, what, to what and more', async () => {
    const { page } = alice
    await page.goto('/audit')
    await field(alice, 'Who').fill('bob')
    await field(alice, 'What').fill('guest')
    await field(alice, 'To what').fill('berry')
    await pages.press(alice, 'Filter')
    await page.waitForURL(/actor=bob/)
    const found = await rows(alice, 'Audit').allInnerTexts()
    assert.ok(found.length >= 1 && found.every(text => /bob[\s\S]*guest\.[\s\S]*berry/.test(text)), found.join('\n'))
    await field(alice, 'More has').fill(lab.lab.nodes[NODE])
    await pages.press(alice, 'Filter')
    await until('the request', async () => (await rows(alice, 'Audit').allInnerTexts()).every(text => text.includes('guest.request')))
    await field(alice, 'More has').fill('nothing like this')
    await pages.press(alice, 'Filter')
    await page.getByText('Nothing matches').waitFor()
    await look.judged(alice, 'audit-found')
  })

  await step('a member reads what was done in their projects, by which door, and takes it along as a file', async () => {
    const { page } = bob
    await page.goto('/projects/atlas')
    await pages.sends(bob, link(bob, 'What was done here'))
    await page.waitForURL(/\/audit\?project=atlas/)
    const found = await rows(bob, 'Audit').allInnerTexts()
    assert.ok(found.length >= 3 && found.every(text => text.includes('atlas')), found.join('\n'))
    assert.match(found.find(text => text.includes('guest.request') && text.includes('cherry')), /bob\s*page\s*guest\.request/)
    const today = new Date().toISOString().slice(0, 10)
    await field(bob, 'From').fill('yesterday')
    await pages.press(bob, 'Filter')
    await pages.errorAt(bob, 'from').waitFor()
    await look.judged(bob, 'audit-own')
    await field(bob, 'From').fill(today)
    await field(bob, 'To what').fill('berry')
    await pages.press(bob, 'Filter')
    await until('the one guest', async () => (await rows(bob, 'Audit').allInnerTexts()).every(text => text.includes('berry')))
    await look.judged(bob, 'audit-own')
    const shown = await rows(bob, 'Audit').count()
    for (const [word, name, lines] of [['Export as CSV', /^corpus-audit-[\d-]+\.csv$/, shown + 1], ['As JSON lines', /\.jsonl$/, shown]]) {
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: word }).click()])
      assert.match(download.suggestedFilename(), name)
      const text = readFileSync(await download.path(), 'utf8')
      assert.equal(text.trim().split('\n').length, lines, text)
      assert.ok(text.includes(`berry.${zone}`) && !text.includes(`apple.${zone}`), text)
    }
    assert.match(page.url(), /subject=berry/, 'the page stays')
    await page.goto('/audit?action=audit.export')
    assert.equal(await rows(bob, 'Audit').count(), 2, 'and that it was exported is a row')
    // Who has no role in the project reads none of it.
    const dave = await enters('dave')
    await dave.page.goto('/audit?project=atlas')
    await dave.page.getByText('Nothing matches').waitFor()
    await dave.page.goto('/')
    await pages.sends(dave, link(dave, 'Audit'))
    await dave.page.getByRole('heading', { level: 1, name: 'Audit' }).waitFor()
    assert.ok(!(await dave.page.locator('main').innerText()).includes(zone))
    assert.equal(await dave.page.getByText('Refused logins').count(), 0)
  })

  await step('a filter is kept as a view, and removed', async () => {
    const { page } = bob
    await page.goto('/guests')
    await field(bob, 'Name has').fill('apple')
    await field(bob, 'Of environment').selectOption('dev')
    await pages.press(bob, 'Filter')
    await page.waitForURL(/q=apple/)
    await page.locator('summary', { hasText: 'Keep as a view' }).click()
    await look.judged(bob, 'view')
    await field(bob, 'Name of the view').fill('My apples')
    await pages.press(bob, 'Save the view')
    await page.getByRole('button', { name: 'Remove this view' }).waitFor()
    assert.equal(await link(bob, 'My apples').getAttribute('aria-current'), 'page')
    await page.goto('/guests')
    await pages.sends(bob, link(bob, 'My apples'))
    await page.waitForURL(/q=apple/)
    assert.equal(await rows(bob, 'Guests').count(), 1)
    assert.ok(!(await alice.read('/guests')).html.includes('My apples'), 'it is its member\'s own')
    await pages.press(bob, 'Remove this view')
    await until('no view', async () => await link(bob, 'My apples').count() === 0)
    assert.match(page.url(), /q=apple/)
  })

  await step('a name is attached from the list of names', async () => {
    const { page } = bob
    await page.goto('/dns')
    await field(bob, 'DNS name').fill(site)
    await field(bob, 'Guest').fill(`nobody.${zone}`)
    await pages.press(bob, 'Attach')
    await pages.errorAt(bob, 'attach-guest').waitFor()
    assert.equal(await field(bob, 'DNS name').inputValue(), site)
    await look.judged(bob, 'attach-refused')
    await field(bob, 'Guest').fill(names[0])
    await pages.press(bob, 'Attach')
    await pages.nameIs(bob, '/dns', site, 'Attached')
    await page.goto('/dns?sort=newest')
    assert.match(await rows(bob, 'DNS names').first().innerText(), new RegExp(site))
  })

  await step('three guests are stopped by one question, and each is a job', async () => {
    const { page } = bob
    await choose(bob, names)
    // What was chosen stays chosen while the list is kept fresh.
    await page.getByRole('heading', { level: 1 }).click()
    for (let looks = 0; looks < 2; looks += 1) await page.waitForResponse(answer => new URL(answer.url()).pathname === '/guests')
    assert.equal(await page.locator('[name=guest]:checked').count(), 3)
    await look.judged(bob, 'chosen')
    await pages.press(bob, 'Stop…')
    await page.getByRole('heading', { level: 1, name: 'Stop 3 guests' }).waitFor()
    assert.match(await page.locator('#question').innerText(), new RegExp(`${site} will not answer`))
    await look.judged(bob, 'stop-question')
    await pages.press(bob, 'Stop these 3 guests')
    await page.getByRole('heading', { level: 1, name: 'What is done' }).waitFor()
    assert.equal(await rows(bob, 'Jobs').count(), 3)
    await until('three jobs that are done', async () => await page.locator('#live-jobs .status', { hasText: 'Done' }).count() === 3, { limit: 60_000 })
    await look.judged(bob, 'stop-done')
    // Stopped already: nothing is offered.
    await choose(bob, names.slice(0, 1))
    await pages.press(bob, 'Stop…')
    await page.getByText('It is stopped already.').waitFor()
    assert.equal(await page.getByRole('button', { name: /^Stop these/ }).count(), 0)
  })

  await step('three guests are destroyed by their number, without JavaScript', async () => {
    plain = await enters('bob', { javaScriptEnabled: false })
    const { page } = plain
    await page.goto('/guests')
    await field(plain, 'All on this page').check()
    await pages.press(plain, 'Destroy…')
    assert.match(await page.locator('#question').innerText(), new RegExp(`Detached: ${site}`))
    await field(plain, 'Type 3 to confirm').fill('2')
    await pages.press(plain, 'Destroy these 3 guests')
    await pages.errorAt(plain, 'confirm').waitFor()
    await field(plain, 'Type 3 to confirm').fill('3')
    await pages.press(plain, 'Destroy these 3 guests')
    await page.getByRole('heading', { level: 1, name: 'What is done' }).waitFor()
    assert.equal(await rows(plain, 'Jobs').count(), 3)
    await until('no guest', async () => (await plain.read('/guests')).html.includes('No guest yet'), { limit: 120_000, pause: 100 })
    assert.equal(await lab.zoneRecords(zone).then(records => JSON.stringify(records ?? '').includes(site)), false)
  })

  await step('everything is taken away again', async () => {
    await pages.jobEnds(alice, await pages.unlink(alice, node, lab.lab.nodes[NODE]))
    await pages.removeZone(alice, zone)
    await lab.untilClean(NODE)
  })

  await step('the server logged no error', async () => {
    assert.deepEqual(server.errors(), [])
  })
})
