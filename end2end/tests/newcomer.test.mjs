// From the first sign-in to a roll back, as somebody goes who never saw it: only by what the pages themselves say
// and offer, with the clicks counted that each way takes. What is typed is no click, nor is a choice of a list: the
// keyboard makes both. A click on anything else is one.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { Visitor, launch } from '../browser.mjs'
import { Database } from '../database.mjs'
import { Repository } from '../git.mjs'
import * as lab from '../lab.mjs'
import * as look from '../look.mjs'
import { note } from '../measures.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const NODE = 'node1'
const zone = `new.${lab.lab.zone}`
const guestName = `web.${zone}`
const site = `www.${zone}`
/** As many guests are there when one is looked for. */
const MANY = 20_000

/** The groups of controls that begin with one that takes something away, in the page. */
function dangerFirst() {
  const groups = [...document.querySelectorAll('main, main .actions, main tr, main li')]
  return groups.flatMap(group => {
    const seen = [...group.querySelectorAll('a.btn, button:not(.copy), summary.btn')].filter(control => control.checkVisibility())
    const line = control => Math.round(control.getBoundingClientRect().top / 16)
    seen.sort((a, b) => line(a) - line(b) || a.getBoundingClientRect().left - b.getBoundingClientRect().left)
    return seen.length > 1 && seen[0].matches('.danger') ? [seen[0].outerHTML.slice(0, 120)] : []
  })
}

test('a newcomer finds the way', async t => {
  await lab.cleanLab()
  const database = await Database.make('newcomer')
  const server = await Server.start('newcomer', { '': { database_url: database.url } })
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
    await database.remove()
  })
  const step = story(t, visitors, server)
  const counted = []
  let alice, bob, clicks, guest, key, phone, repository, url

  const enters = async login => {
    const visitor = await Visitor.open(browser, server)
    visitors.push(visitor)
    return visitor.enter(login, lab.lab.password)
  }
  /** Counts the clicks of a way. */
  const way = async (what, most, walk) => {
    clicks = 0
    await walk()
    counted.push([what, `${clicks} clicks`])
    assert.ok(clicks <= most, `${what} takes ${clicks} clicks, not ${most}`)
  }
  const click = async (visitor, target) => {
    clicks++
    await pages.sends(visitor, target)
  }
  const button = (visitor, name) => visitor.page.getByRole('button', { name, exact: true })
  /** The one thing that the first steps offer next. */
  const nextStep = visitor => visitor.page.locator('.first-steps a.btn.primary')
  const stepIs = (visitor, title, word) =>
    visitor.page.locator(`.first-steps li[data-step="${title}"]`).getByText(word, { exact: true }).waitFor()

  await step('an operator is told to link a host, and does', async () => {
    alice = await enters('alice')
    await stepIs(alice, 'Link a compute node', 'Next')
    await look.judged(alice, 'newcomer-operator')
    await way('link and initialize a node', 4, async () => {
      const { page } = alice
      await click(alice, nextStep(alice))
      await page.getByLabel('Host name or address', { exact: true }).fill(lab.lab.nodes[NODE])
      await click(alice, button(alice, 'Read the host key'))
      const fingerprint = (await page.locator('code[data-value=fingerprint]').textContent()).trim()
      assert.ok((await lab.fingerprints(NODE)).includes(fingerprint))
      await page.getByLabel('One-time password (optional)').fill(lab.lab.nodePassword)
      await click(alice, button(alice, 'This is the host: link it'))
      const node = pages.here(alice)
      await page.locator('.head .status', { hasText: 'Linked' }).waitFor()
      await click(alice, button(alice, 'Initialize'))
      // The window says it to who looks at another one.
      await page.waitForFunction(() => /^(\(\d+\) )?Initializing: /.test(document.title))
      await pages.untilStatus(alice, node, 'Ready', { limit: 180_000, pause: 100 })
    })
    await alice.page.goto('/')
    await stepIs(alice, 'Initialize it', 'Done')
  })

  await step('the node gets a name, and is known by it', async () => {
    await alice.page.goto('/nodes')
    await pages.sends(alice, alice.page.locator('table a').first())
    await alice.page.getByLabel('Known as').fill('Paris 1')
    await pages.press(alice, 'Save the name')
    await alice.page.getByRole('heading', { level: 1, name: 'Paris 1' }).waitFor()
    assert.match((await alice.read('/nodes?q=paris')).html, />Paris 1<.*10\.\d+\.\d+\.\d+/s)
  })

  await step('and to create a zone', async () => {
    await alice.page.goto('/')
    await stepIs(alice, 'Create a DNS zone', 'Next')
    await pages.sends(alice, nextStep(alice))
    await alice.page.getByLabel('Zone name').fill(zone)
    await alice.page.getByLabel('All projects', { exact: true }).check()
    await pages.press(alice, 'Create the zone')
    await alice.page.goto('/')
    await stepIs(alice, 'Create a DNS zone', 'Done')
    await pages.press(alice, 'Dismiss')
    assert.equal(await alice.page.locator('.first-steps').count(), 0, 'dismissed, and stays so')
  })

  await step('a member is told to add a key, and then to request a guest', async () => {
    bob = await enters('bob')
    await stepIs(bob, 'Add your SSH key', 'Next')
    await look.judged(bob, 'newcomer-member')
    key = await lab.makeKey(path.join(server.folder, 'bob'))
    await pages.sends(bob, nextStep(bob))
    await bob.page.getByLabel('Public key').fill(key.line)
    await pages.press(bob, 'Add the key')
    await bob.page.goto('/')
    await stepIs(bob, 'Request a guest', 'Next')
    await way('request a guest', 2, async () => {
      await click(bob, nextStep(bob))
      await bob.page.getByLabel('Name', { exact: true }).fill(guestName)
      await bob.page.getByLabel('Environment').selectOption('staging')
      await bob.page.getByLabel('DNS names').fill(site)
      await click(bob, button(bob, 'Request the guest'))
      guest = pages.here(bob)
      await pages.untilStatus(bob, guest, 'Running')
    })
    await pages.nameIs(bob, guest, site, 'Attached')
  })

  await step('what is shown leads to the first push, and the push says where to look', async () => {
    await bob.page.goto('/')
    await stepIs(bob, 'Push', 'Next')
    await bob.page.goto(guest)
    await pages.sends(bob, bob.page.locator('#guest').getByRole('link', { name: 'Set up' }))
    await pages.setUp(bob)
    const page = '/projects/atlas/staging'
    const html = await pages.untilStatus(bob, page, 'Nothing live yet', { limit: 120_000 })
    url = /ssh:\/\/git@[^\s<"]+\/staging/.exec(html)[0]
    repository = await Repository.make(path.join(server.folder, 'site'), key.path, { example: 'static-site' })
    const pushed = await repository.push(url)
    assert.equal(pushed.code, 0, pushed.text)
    assert.ok(pushed.text.includes(`site https://${site}/`), pushed.text)
    const [, deployment] = /deployment (http:\S+)/.exec(pushed.text)
    assert.equal(deployment, `${server.url}/projects/atlas/deployments/1`)
    assert.equal((await bob.page.goto(deployment)).status(), 200)
    await bob.page.goto('/')
    assert.equal(await bob.page.locator('.first-steps').count(), 0, 'all is done')
  })

  await step('rolling back takes two clicks', async () => {
    await repository.commit('Another one')
    assert.equal((await repository.push(url)).code, 0)
    await pages.untilStatus(bob, '/projects/atlas/staging', 'Live now')
    await bob.page.goto('/projects/atlas')
    await way('roll back', 2, async () => {
      await click(bob, bob.page.getByRole('link', { name: /^Roll back to #1/ }))
      await click(bob, button(bob, (await bob.page.getByRole('button', { name: /^Roll back to #1/ }).innerText()).trim()))
      await bob.page.locator('.head .status', { hasText: 'Live now' }).waitFor({ timeout: 60_000 })
    })
    assert.match(await bob.page.title(), /Live now: atlas #3 /)
    await bob.screenshot('newcomer-rolled-back')
  })

  await step('a page comes alive in a browser that never has a moment to spare', async () => {
    const page = await bob.context.newPage()
    await page.addInitScript(() => {
      window.requestIdleCallback = (run, options) => (options?.timeout ? setTimeout(run, options.timeout) : 0)
    })
    await page.goto('/')
    await bob.alive(page)
    await page.close()
  })

  /** Rests on a link of an open page until the browser has fetched what it leads to. */
  const restsOn = async (visitor, link) => {
    await visitor.alive()
    const devtools = await visitor.context.newCDPSession(visitor.page)
    await devtools.send('Preload.enable')
    const fetched = new Promise(resolve => devtools.on('Preload.prefetchStatusUpdated', ({ status }) => status === 'Ready' && resolve()))
    await link.hover()
    await fetched
    await devtools.detach()
  }

  await step('a link is fetched when the pointer rests on it, and what it shows is looked at anew', async () => {
    const { page } = bob
    await page.goto('/')
    const link = page.locator('.sidebar').getByRole('link', { name: /^Guests/ })
    await restsOn(bob, link)
    await pages.sends(bob, link)
    assert.equal(await page.locator('main[data-early]').count(), 1, 'it is the page that was fetched before')
    assert.equal(new URL(page.url()).pathname, '/guests')
  })

  await step('what somebody changes meanwhile is in the form of a page that was fetched before', async () => {
    const { page } = bob
    const settings = visitor => visitor.page.getByLabel('Set here, as YAML')
    await page.goto('/projects/atlas')
    const link = page.locator('#main a[href="/projects/atlas/staging"]').first()
    await restsOn(bob, link)
    await alice.page.goto('/projects/atlas/staging')
    await settings(alice).fill('archives: 4')
    await pages.press(alice, 'Save')
    await pages.sends(bob, link)
    assert.equal(await page.locator('main[data-early]').count(), 1, 'it is the page that was fetched before')
    await until('what alice set', async () => (await settings(bob).inputValue()).trim() === 'archives: 4')
    await settings(bob).fill('archives: 5')
    await pages.press(bob, 'Save')
    assert.equal(await page.locator('#error-summary').count(), 0, 'it is the version that alice made')
    assert.equal((await settings(bob).inputValue()).trim(), 'archives: 5')
  })

  await step('where motion is welcome a page turns into the next one', async () => {
    const moved = await Visitor.open(browser, server, { storageState: await bob.context.storageState(), reducedMotion: 'no-preference' })
    visitors.push(moved)
    await moved.page.addInitScript(() => addEventListener('pagereveal', event => sessionStorage.setItem(location.pathname, Boolean(event.viewTransition))))
    /** Follows a link of the navigation: whether its page came by a transition. */
    const turnsInto = async (name, place) => {
      await pages.sends(moved, moved.page.locator('.sidebar').getByRole('link', { name }))
      return until('the page to be revealed', () => moved.page.evaluate(place => sessionStorage.getItem(place), place))
    }
    await moved.page.goto('/')
    assert.equal(await turnsInto(/^Guests/, '/guests'), 'true')
    await moved.page.emulateMedia({ reducedMotion: 'reduce' })
    assert.equal(await turnsInto(/^Jobs/, '/jobs'), 'false')
  })

  await step('a reason that is opened stays open while its table goes on', async () => {
    const { page } = bob
    const why = `the DNS server refused it: ${'no answer in time, '.repeat(12)}and it was given up`
    await database.rows(`update dns_names set state = 'failed', state_reason = '${why}' where name = '${site}'`)
    await page.goto('/dns')
    await bob.alive()
    const reason = page.locator('details.clamp')
    await reason.locator('summary').click()
    await database.rows(`insert into dns_names (id, name, zone_id, guest_id, state)
      select gen_random_uuid(), 'a.' || name, zone_id, guest_id, 'attached' from dns_names where name = '${site}'`)
    await page.locator('td').getByText(`a.${site}`).first().waitFor()
    assert.equal(await page.locator('details.clamp[open]').count(), 1)
    assert.equal(await page.evaluate(() => document.activeElement.matches('.clamp > summary')), true)
    await database.rows(`delete from dns_names where name = 'a.${site}'`)
    await database.rows(`update dns_names set state = 'attached', state_reason = null where name = '${site}'`)
  })

  await step('what the README shows is what is there', async () => {
    for (const name of ['api', 'search']) {
      const made = await pages.requestGuest(bob, { name: `${name}.${zone}`, project: 'atlas', environment: 'dev', size: 'xxsmall' })
      await pages.untilStatus(bob, made, 'Running')
    }
    const picture = async (name, visitor, place) => {
      await visitor.page.goto(place)
      await visitor.alive()
      await visitor.screenshot(`readme-${name}`, { fullPage: false })
    }
    await picture('guest', bob, guest)
    await picture('job', bob, /href="(\/jobs\/[0-9a-f-]{36})"[^>]*>Create guest/.exec((await bob.read('/jobs')).html)[1])
    writeFileSync(path.join(repository.folder, '.corpus/20_migrate'), '#!/bin/sh\necho "Applying 0007_orders.sql"\necho "could not connect to the database: connection refused" >&2\nexit 3\n', { mode: 0o755 })
    await repository.commit('Keep orders')
    const failed = await repository.push(url)
    assert.match(failed.text, /rolled back to [0-9a-f]{7}/, failed.text)
    await picture('overview', alice, '/')
    await picture('deployment', bob, '/projects/atlas/deployments/4')
    await picture('node', alice, await alice.page.goto('/nodes').then(() => alice.page.locator('table a').first().getAttribute('href')))
    phone = await Visitor.open(browser, server, { viewport: { width: 390, height: 844 }, colorScheme: 'dark', storageState: await bob.context.storageState() })
    visitors.push(phone)
    await phone.page.goto('/projects/atlas')
    await phone.screenshot('readme-phone', { fullPage: false })
  })

  await step('on a phone rows are short, reasons open, and nothing that takes away comes first', async () => {
    const { page } = phone
    const box = locator => locator.boundingBox()
    const why = 'install: .corpus/20_migrate ended with status 3: the database was asked four times, and each time it answered that there is no connection left for who asks, which nobody had seen before on this guest, nor on any other one of this project or of those beside it'
    await database.rows(`insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, by, state, commit, subject, fault, ordered_at, ended_at, elapsed_ms)
      select gen_random_uuid(), d.project_id, 1000 + n, case when n % 2 = 0 then 'prod' else 'staging' end, d.guest_id, d.guest, 'push', 'bob',
        case when n % 2 = 0 then 'rolled_back' else 'superseded' end, repeat('ab', 20), 'Keep orders', case when n % 2 = 0 then '${why}' end,
        now() - n * interval '1 ms', now(), 1500
      from (select * from deployments where leader_id is null limit 1) d, generate_series(1, 50) n`)
    await page.goto('/deployments')
    await phone.alive()
    assert.equal(await page.locator('tr[data-deployment]').count(), 50)
    const here = await box(page.locator('.sidebar a[aria-current=page]'))
    assert.ok(here.x >= -1 && here.x + here.width <= 391, `the entry of the page in the menu is at ${here.x}`)
    const { height } = await box(page.locator('table[aria-label=Deployments]'))
    assert.ok(height / 50 < 120, `a row is ${height / 50} px`)
    const reason = page.locator('details.reason').first()
    const closed = (await box(reason)).height
    assert.ok(closed <= 2.5 * 12.5 * 1.4, `a reason is ${closed} px`)
    await reason.locator('summary').focus()
    await page.keyboard.press('Enter')
    assert.ok((await box(reason)).height > 1.5 * closed, 'it opens by the keyboard')
    const color = selector => page.locator(selector).first().evaluate(element => getComputedStyle(element).color)
    assert.notEqual(await color('.tag.prod'), await color('.sidebar a[aria-current=page]'))

    await page.goto('/projects/atlas/deployments/4')
    assert.ok(await page.getByRole('link', { name: /^log line \d+$/ }).count() > 0)

    await phone.context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.goto(guest)
    await phone.alive()
    const copied = page.locator('.copied').first()
    const [command, sign] = [await box(copied.locator('code')), await box(copied.locator('button'))]
    assert.ok(Math.abs(command.y + command.height / 2 - sign.y - sign.height / 2) < 8, 'the sign is on the line of the command')
    await copied.locator('button').click()
    const value = await copied.locator('button').getAttribute('data-copy')
    await until('the command in the clipboard', async () => await page.evaluate(() => navigator.clipboard.readText()) === value)

    const places = [[phone, guest, 'Destroy guest'], [phone, '/projects/atlas'], [phone, '/projects/atlas/staging'], [phone, '/keys']]
    await alice.page.setViewportSize({ width: 390, height: 844 })
    await alice.page.goto('/nodes')
    const node = await alice.page.locator('table a').first().getAttribute('href')
    for (const [visitor, place, last] of [...places, [alice, node, 'Unlink node']]) {
      await visitor.page.goto(place)
      assert.deepEqual(await visitor.page.evaluate(dangerFirst), [], place)
      if (!last) continue
      const [danger, content] = [await box(visitor.page.getByRole('link', { name: last, exact: true })), await box(visitor.page.locator('main > .cols'))]
      assert.ok(danger.y >= content.y + content.height, `${last} stands below all else`)
    }
    await alice.page.setViewportSize({ width: 1440, height: 900 })
    await bob.page.goto('/deployments')
    const [result, table] = [await box(bob.page.locator('td.result').first()), await box(bob.page.locator('table[aria-label=Deployments]'))]
    assert.ok(result.width > table.width / 4, `the result has ${result.width} of ${table.width} px`)
  })

  await step(`any of ${MANY} guests is found in two clicks`, async () => {
    await database.rows(`insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, state)
      select gen_random_uuid(), 'g' || n || '.many.example.org', g.node_id, g.project_id, g.environment, g.driver, g.image, g.backing, g.size, g.mode, 'stopped'
      from (select * from guests limit 1) g, generate_series(1, ${MANY}) n`)
    await bob.page.goto('/')
    await way('find a guest', 2, async () => {
      clicks++
      await bob.page.getByRole('link', { name: /^Search/ }).click()
      await bob.page.keyboard.type('g17171.many')
      await click(bob, bob.page.getByRole('option', { name: /g17171\.many/ }))
      await bob.page.getByRole('heading', { level: 1, name: 'g17171.many.example.org' }).waitFor()
    })
    note('Clicks that a newcomer needs', counted)
  })
})
