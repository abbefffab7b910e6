// Projects without a guest: to make and remove them, members and roles, what strangers and
// lesser roles are refused, and how the pages of deployments look and read, with rows that were
// put into the database.
import assert from 'node:assert/strict'
import test from 'node:test'
import { Visitor, launch } from '../browser.mjs'
import { Database } from '../database.mjs'
import * as lab from '../lab.mjs'
import * as look from '../look.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'
import { begin, ends, fill, follow, say } from '../weeks.mjs'

const UUID = '0199d3c0-0000-7000-8000-000000000001'

test('projects, their members and their deployments', async t => {
  const database = await Database.make('corpus_projects')
  const server = await Server.start('projects', { '': { database_url: database.url }, projects: { create: 'members' } })
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
    await database.remove()
  })
  const step = story(t, visitors, server)
  const people = {}
  let sample, follower

  const enter = async (login, options) => {
    const visitor = await Visitor.open(browser, server, options)
    visitors.push(visitor)
    return visitor.enter(login, lab.lab.password)
  }
  /** Posts a form as the person's browser would, and gives the answer as it is, or the page that shows the form again. */
  const post = async (visitor, path, form = {}) => {
    const { request } = visitor.context
    const answer = await request.post(path, { form, headers: { origin: server.url }, maxRedirects: 0 })
    const { location } = answer.headers()
    return pages.isKept(location) ? request.get(location) : answer
  }

  await step('people sign in', async () => {
    for (const login of ['bob', 'carol', 'dave', 'twin1']) people[login] = await enter(login)
  })

  await step('a project needs a name that is free and good', async () => {
    const { page } = people.bob
    await page.goto('/projects')
    await page.getByRole('link', { name: 'New project' }).click()
    for (const [name, says] of [['Bad Name', /not valid/], ['new', /word of Corpus/], ['atlas', /already/]]) {
      await page.getByLabel('Name', { exact: true }).fill(name)
      await pages.press(people.bob, 'Make the project')
      assert.match(await pages.errorAt(people.bob, 'name').textContent(), says, name)
      assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), name, 'nothing typed is lost')
    }
    await page.getByLabel('Name', { exact: true }).fill('carto-api')
    await pages.press(people.bob, 'Make the project')
    assert.equal(pages.here(people.bob), '/projects/carto-api')
    await page.getByText('You are maintainer').waitFor()
    await page.getByText('No guest of this project is free').waitFor()
  })

  await step('a stranger finds nothing of it', async () => {
    for (const path of ['/projects/carto-api', '/projects/carto-api/staging', '/projects/carto-api/remove', '/projects/carto-api/deployments/1', '/projects/carto-api/deployments/1.json', `/deployments/${UUID}`, '/projects/no-such', '/deployments/x']) {
      assert.equal((await people.dave.read(path)).status, 404, path)
    }
    const forms = { members: { login: 'dave', role: 'maintainer' }, delete: { confirm: 'carto-api' }, 'environments/staging/deployments': {}, 'environments/staging/settings': { settings: 'a: 1', version: '0123456789abcdef' } }
    for (const [path, form] of Object.entries(forms)) {
      assert.equal((await post(people.dave, `/projects/carto-api/${path}`, form)).status(), 404, path)
    }
    const { html } = await people.dave.read('/projects')
    assert.ok(!html.includes('carto-api'))
    assert.ok(!(await people.dave.read('/deployments?project=carto-api')).html.includes('>carto-api'))
  })

  await step('members are given roles and see what they may', async () => {
    const { page } = people.bob
    const give = async (login, role) => {
      await page.goto('/projects/carto-api')
      await page.getByLabel('Login name').fill(login)
      await page.getByLabel('Role', { exact: true }).selectOption(role)
      await pages.press(people.bob, 'Give the role')
    }
    await give('nobody-here', 'viewer')
    assert.match(await pages.errorAt(people.bob, 'login').textContent(), /nobody-here/i)
    await give('carol', 'developer')
    await give('twin1', 'viewer')
    await page.locator('[data-member=carol]').getByText('developer, given here').waitFor()
    const seen = (await people.carol.read('/projects/carto-api')).html
    assert.ok(seen.includes('You are developer') && !seen.includes('Give the role'))
    assert.equal((await post(people.carol, '/projects/carto-api/members', { login: 'dave', role: 'viewer' })).status(), 403)
    assert.equal((await post(people.twin1, '/projects/carto-api/environments/staging/settings', { settings: 'a: 1', version: '0123456789abcdef' })).status(), 403)
    assert.equal((await post(people.carol, '/projects/carto-api/delete')).status(), 403)
    await give('carol', 'viewer')
    await page.locator('[data-member=carol]').getByText('viewer, given here').waitFor()
  })

  await step('a role is taken again, but not the last maintainer\'s, nor what the directory gave', async () => {
    const { page } = people.bob
    await pages.confirmIn(people.bob, page.locator('[data-member=carol]'))
    await page.locator('[data-member=carol]').waitFor({ state: 'detached' })
    assert.equal((await people.carol.read('/projects/carto-api')).status, 404)
    await pages.confirmIn(people.bob, page.locator('[data-member=bob]'))
    assert.match(await pages.summary(people.bob).textContent(), /needs a maintainer/)
    await page.goto('/projects/atlas')
    await page.locator('[data-member=carol]').getByText('developer, from the directory').waitFor()
    assert.equal(await page.locator('[data-member=carol] summary').count(), 0)
    assert.equal((await post(people.bob, '/projects/atlas/members/carol/delete')).status(), 422)
  })

  await step('what is no guest of the project makes no environment', async () => {
    const refused = async (guest, says) => {
      const answer = await post(people.bob, '/projects/carto-api/environments', { guest, _page: '/projects/carto-api', _form: 'environment' })
      assert.equal(answer.status(), 422)
      assert.match(pages.errorsIn(await answer.text()), says)
    }
    await refused('', /needed/)
    await refused('staging', /not valid|not an? /)
    await refused(UUID, /no such guest/)
    const nowhere = await post(people.bob, '/projects/carto-api/environments/staging/deployments', { _page: '/projects/carto-api' })
    assert.equal(nowhere.status(), 422)
    assert.match(pages.errorsIn(await nowhere.text()), /has no staging; set it up first/)
    assert.equal((await post(people.bob, '/projects/carto-api/environments/qa/deployments')).status(), 404)
    assert.equal((await people.bob.read('/projects/carto-api/staging')).status, 404)
  })

  await step('without JavaScript: make a project and destroy it, by its name only', async () => {
    const visitor = await enter('bob', { javaScriptEnabled: false })
    await visitor.page.goto('/projects/new')
    await visitor.page.getByLabel('Name', { exact: true }).fill('short-lived')
    await pages.press(visitor, 'Make the project')
    await pages.sends(visitor, visitor.page.getByRole('link', { name: 'Destroy project', exact: true }))
    await visitor.page.getByText('there is no way back').first().waitFor()
    await visitor.page.getByLabel('Type short-lived to confirm').fill('something else')
    await pages.press(visitor, 'Destroy this project')
    await pages.errorAt(visitor, 'confirm').waitFor()
    await visitor.page.getByLabel('Type short-lived to confirm').fill('short-lived')
    await pages.press(visitor, 'Destroy this project')
    assert.match(pages.here(visitor), /^\/jobs\//, 'the job does it')
    const job = pages.here(visitor)
    await until('the project is gone', async () => (await people.bob.read('/projects/short-lived')).status === 404)
    // Who asked for it sees how it ended; to others it is nothing.
    assert.match((await people.bob.read(job)).html, /Destroy project short-lived/)
    assert.equal((await people.carol.read(job)).status, 404)
    assert.ok(!(await people.bob.read('/projects')).html.includes('short-lived'))
  })

  await step('a project that waits to be destroyed takes no change, and is kept by a cancel', async () => {
    const { page } = people.bob
    await page.goto('/projects/new')
    await page.getByLabel('Name', { exact: true }).fill('kept-after-all')
    await pages.press(people.bob, 'Make the project')
    // A job of it that is stuck is waited for.
    await database.rows(`insert into jobs (id, kind, title, params, dag, state, project_id)
      select gen_random_uuid(), 'guest_stop', 'Stop guest of kept-after-all', '{}', '{}', 'stuck', id from projects where name = 'kept-after-all'`)
    await database.rows(`insert into job_locks (resource, job_id, mode, held_since)
      select 'project:' || project_id, id, 'shared', now() from jobs where title = 'Stop guest of kept-after-all'`)
    await page.goto('/projects/kept-after-all/remove')
    await page.getByText('of the project is not over').waitFor()
    await page.getByLabel('Type kept-after-all to confirm').fill('kept-after-all')
    await pages.press(people.bob, 'Destroy this project')
    const job = pages.here(people.bob)
    await page.getByText('Stop guest of kept-after-all').first().waitFor()
    await page.goto('/projects/kept-after-all')
    await page.getByText('kept-after-all is being destroyed').waitFor()
    assert.equal(await page.getByRole('link', { name: 'Destroy project', exact: true }).count(), 0)
    const refused = await post(people.bob, '/projects/kept-after-all/members', { login: 'carol', role: 'viewer', _page: '/projects/kept-after-all' })
    assert.equal(refused.status(), 409)
    assert.match(await refused.text(), /is being destroyed by job/)
    await page.goto(job)
    await pages.press(people.bob, 'Cancel the job')
    await page.goto('/projects/kept-after-all')
    await page.getByRole('link', { name: 'Destroy project', exact: true }).waitFor()
    await database.rows(`update jobs set state = 'abandoned', comment = 'of a test', ended_at = now() where title = 'Stop guest of kept-after-all'`)
    await database.rows(`delete from job_locks where resource like 'project:%' and job_id in (select id from jobs where title = 'Stop guest of kept-after-all')`)
  })

  await step('a failed deployment opens at the line that failed', async () => {
    sample = await fill(database, { project: 'carto-api', address: lab.lab.nowhere })
    const { page } = people.bob
    await page.goto(`/deployments/${sample.ids.at(-1)}`)
    const path = `/projects/carto-api/deployments/${sample.failed}`
    assert.equal(pages.here(people.bob), path)
    await page.getByText(`Rolled back to #${sample.live}`).waitFor()
    const line = page.locator('#L415')
    assert.ok(await line.evaluate(element => {
      const [box, log] = [element.getBoundingClientRect(), element.closest('.log').getBoundingClientRect()]
      return box.top >= log.top && box.bottom <= log.bottom
    }), 'it is in view in its box')
    assert.match(await line.textContent(), /tile_store/)
    assert.ok(!(await page.content()).includes('<script>alert(1)'))
    await page.getByLabel('Search the log').fill('NUMBER 42 <')
    await pages.press(people.bob, 'Search')
    await page.getByText('1 line with').waitFor()
    await page.locator('.log a').first().click()
    await page.locator('#L42:target').waitFor()
    await page.getByRole('link', { name: 'Later' }).click()
    await page.getByText(/^lines 78 to 277 of 452/).waitFor()
    await page.getByRole('link', { name: 'Whole log' }).click()
    await page.getByText('lines 1 to 452 of 452').waitFor()
  })

  await step('a deployment that runs is followed without a reload, and its log stays at its end', async () => {
    const { page } = people.bob
    const number = sample.failed + 1
    const id = await begin(database, { project: 'carto-api', number, guest: sample.guest })
    await page.goto(`/projects/carto-api/deployments/${number}`)
    await page.evaluate(() => { window.sameDocument = true })
    await page.locator('.pipeline .busy[data-phase=install]').waitFor()
    await page.getByText('Nothing was written yet').waitFor()
    for (let line = 1; line <= 60; line += 1) await say(database, id, line, `a line of ${line}`)
    const seen = text => page.waitForFunction(text => {
      const log = document.querySelector('.log')
      const line = [...document.querySelectorAll('.log .lines > div')].find(one => one.textContent.includes(text))
      return line && line.getBoundingClientRect().bottom <= log.getBoundingClientRect().bottom + 1
    }, text)
    await seen('a line of 60')
    await say(database, id, 61, 'the last line of all')
    await seen('the last line of all')
    await ends(database, id)
    await page.locator('#live-state .status').getByText('Was live').waitFor()
    assert.ok(await page.evaluate(() => window.sameDocument), 'it was not loaded again')
    // A page whose thing is gone goes on by itself to say so.
    await page.goto('/projects')
    await database.rows(`delete from deployments where id = '${id}'`)
  })

  await step('its report is a file', async () => {
    const path = `/projects/carto-api/deployments/${sample.failed}.json`
    const answer = await people.bob.context.request.get(path)
    assert.equal(answer.status(), 200)
    assert.match(answer.headers()['content-type'], /^application\/json/)
    assert.equal(answer.headers()['content-disposition'], `attachment; filename="carto-api-${sample.failed}.json"`)
    const detail = await answer.json()
    assert.equal(detail.report.fault.line, 415)
    assert.equal((await people.dave.read(path)).status, 404)
  })

  await step('an environment on two guests says what is live on each, and a deployment has a part there', async () => {
    follower = await follow(database, { project: 'carto-api', sample })
    const { page } = people.bob
    for (const place of ['/projects/carto-api', '/projects/carto-api/staging']) {
      await page.goto(place)
      await page.locator('.guests').getByText(`Behind: #${sample.live - 1}`).waitFor()
      await page.locator('.guests').getByText('leader, pushed to').waitFor()
    }
    await page.getByText(`#${sample.live} is live on staging.carto.example.net; ${follower.name} has #${sample.live - 1}.`).waitFor()
    await page.goto(`/projects/carto-api/deployments/${sample.failed}`)
    await page.locator('.guests').getByRole('link', { name: follower.name, exact: true }).click()
    await page.getByRole('heading', { level: 1, name: `on ${follower.name}` }).waitFor()
    await page.locator('#L415').waitFor()
    await page.getByLabel('Search the log').fill('NUMBER 42 <')
    await pages.press(people.bob, 'Search')
    await page.getByText('1 line with').waitFor()
    const where = new URL(page.url())
    assert.equal(where.searchParams.get('guest'), follower.name, 'the search stays on the part')
    await page.locator('.log a').first().click()
    // A log that is drawn anew when its page comes alive has no target any more; it stays where it was scrolled to.
    await page.locator('#L42').waitFor()
    assert.equal(new URL(page.url()).hash, '#L42')
    await page.getByRole('heading', { level: 1, name: `on ${follower.name}` }).waitFor()
    const report = await people.bob.context.request.get(await page.getByRole('link', { name: 'Download report' }).getAttribute('href'))
    assert.equal((await report.json()).line.guest_name, follower.name)
    await page.getByRole('link', { name: 'The whole deployment' }).click()
    await page.waitForURL(`${server.url}/projects/carto-api/deployments/${sample.failed}`)
  })

  await step('a guest is taken from an environment by its name, by who may', async () => {
    const { page } = people.bob
    const path = `/projects/carto-api/staging/guests/${follower.id}/remove`
    await page.goto('/projects/carto-api/staging/remove')
    await page.getByText('It has 1 follower').waitFor()
    await page.getByRole('link', { name: `Remove ${follower.name}` }).click()
    assert.equal(pages.here(people.bob), path)
    await page.getByLabel(`Type ${follower.name} to confirm`).fill('something else')
    await pages.press(people.bob, 'Remove this guest')
    await pages.errorAt(people.bob, 'confirm').waitFor()
    const form = id => `/projects/carto-api/environments/staging/guests/${id}/delete`
    assert.equal((await post(people.twin1, form(follower.id))).status(), 403)
    assert.equal((await people.twin1.read(path)).status, 403)
    assert.equal((await post(people.dave, form(follower.id))).status(), 404)
    assert.equal((await people.bob.read(`/projects/carto-api/staging/guests/${UUID}/remove`)).status, 404)
    const leader = await post(people.bob, form(sample.guest))
    assert.equal(leader.status(), 404, 'the leader goes with the environment')
    const whole = await post(people.bob, '/projects/carto-api/environments/staging/delete', { _page: '/projects/carto-api/staging/remove' })
    assert.equal(whole.status(), 409)
    assert.match(pages.errorsIn(await whole.text()), new RegExp(`Take ${follower.name} from`))
  })

  await step('lists are filtered and have pages', async () => {
    const { page } = people.bob
    await page.goto('/deployments')
    await page.evaluate(() => { window.stayed = true })
    await page.getByLabel('State').selectOption({ label: 'Rolled back' })
    await page.getByLabel('Project').fill('carto-api')
    await pages.press(people.bob, 'Filter')
    const rows = page.locator('[data-deployment]')
    assert.equal(await rows.count(), 4)
    assert.match(page.url(), /state=rolled_back/, 'the list has an address')
    await page.goBack()
    await until('the list as it was', async () => (await rows.count()) > 4)
    assert.equal(await page.evaluate(() => window.stayed), true, 'it was never loaded again')
    await page.goto('/deployments?by=nobody')
    await page.getByText('No deployment like that').waitFor()
    await page.goto('/deployments?limit=20')
    assert.equal(await rows.count(), 20)
    await page.getByRole('link', { name: 'Next page' }).click()
    await page.waitForURL(/cursor=/)
    assert.equal(await rows.count(), sample.ids.length - 20)
  })

  await step('a viewer reads and changes nothing', async () => {
    const { html } = await people.twin1.read(`/projects/carto-api/deployments/${sample.live}`)
    assert.ok(html.includes('Download report') && !/Deploy \w+ again/.test(html))
    const forms = [['deployments', {}], ['deployments', { archive: sample.ids.at(-1) }], ['drill', {}], ['settings', { settings: 'a: 1', version: '0123456789abcdef' }]]
    for (const [path, form] of forms) {
      const answer = await post(people.twin1, `/projects/carto-api/environments/staging/${path}`, form)
      assert.equal(answer.status(), 403, path)
    }
  })

  await step('settings that are none come back with what is wrong', async () => {
    const { page } = people.bob
    const save = async text => {
      await page.goto('/projects/carto-api/staging')
      await page.getByLabel('Set here, as YAML').fill(text)
      await pages.press(people.bob, 'Save')
      return pages.errorAt(people.bob, 'settings').textContent()
    }
    assert.match(await save('a: [1,\nb: 2'), /line \d/)
    assert.equal(await page.getByLabel('Set here, as YAML').inputValue(), 'a: [1,\nb: 2')
    assert.match(await save('- a\n- b'), /mapping/)
    assert.match(await save('db:\n  password: x'), /secret/)
  })

  for (const [width, colorScheme] of [[1440, 'light'], [1440, 'dark'], [390, 'light'], [390, 'dark']]) {
    await step(`every page at ${width} pixels, ${colorScheme}`, async () => {
      const storageState = await people.bob.context.storageState()
      const visitor = await Visitor.open(browser, server, { viewport: { width, height: 900 }, colorScheme, storageState })
      visitors.push(visitor)
      const of = `/projects/carto-api`
      const places = { overview: '/', projects: '/projects', new: '/projects/new', project: of, remove: `${of}/remove`, environment: `${of}/staging`, restore: `${of}/staging/restore/${sample.ids.at(-2)}`, drill: `${of}/staging/drill`, 'remove-environment': `${of}/staging/remove`, 'remove-environment-guest': `${of}/staging/guests/${follower.id}/remove`, part: `${of}/deployments/${sample.failed}?guest=${follower.name}`, deployments: '/deployments', failed: `${of}/deployments/${sample.failed}`, live: `${of}/deployments/${sample.live}`, search: `${of}/deployments/${sample.failed}?q=wheel`, guest: `/guests/${sample.guest}` }
      const faults = []
      for (const [name, place] of Object.entries(places)) {
        await visitor.page.goto(place)
        await visitor.page.evaluate(() => document.fonts.ready)
        const found = [...await look.overflow(visitor.page), ...await look.violations(visitor.page)]
        await visitor.screenshot(`projects-${name}-${width}-${colorScheme}`)
        if (colorScheme === 'light') found.push(...await look.unreachable(visitor.page))
        faults.push(...found.map(fault => `${name}: ${fault}`))
      }
      assert.deepEqual(faults, [])
      await visitor.close()
    })
  }

  await step('the server logged no error', async () => {
    assert.deepEqual(server.errors(), [])
  })
})
