// What happened without looking is at the bell, for whom it concerns and nobody else; and what was just taken away
// comes back by one press, for who took it.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { Visitor, launch } from '../browser.mjs'
import { Repository } from '../git.mjs'
import * as lab from '../lab.mjs'
import * as look from '../look.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const NODE = 'node1'
const zone = `knowing.${lab.lab.zone}`
const guestName = `web.${zone}`
const site = `www.${zone}`
const project = '/projects/atlas'

test('what happened is told, and a slip is undone', async t => {
  await lab.cleanLab()
  const server = await Server.start('knowing')
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
  })
  const step = story(t, visitors, server)
  let alice, bob, carol, dave, guest, repository, url

  const enters = async (login, options) => {
    const visitor = await Visitor.open(browser, server, options)
    visitors.push(visitor)
    return visitor.enter(login, lab.lab.password)
  }
  /** How much is unread, by what a page that is read now says at its bell. */
  const unread = async visitor => {
    const { html } = await visitor.read('/docs')
    return Number(/aria-label="Notices(?:, (\d+) unread)?"/.exec(html)[1] ?? 0)
  }
  const allRead = async visitor => {
    await visitor.page.goto('/notices')
    const mark = visitor.page.getByRole('button', { name: 'Mark all as read' })
    if (await mark.count()) await pages.sends(visitor, mark)
  }
  /** Posts a form as the person's browser would, and gives the answer as it is. */
  const post = (visitor, place) => visitor.context.request.post(place, { form: {}, headers: { origin: server.url }, maxRedirects: 0 })
  /** The undo that a page offers. */
  const undoAt = async (visitor, place) => {
    const html = await until(`an undo at ${place}`, async () => {
      const { html } = await visitor.read(place)
      return /action="\/undoes\//.test(html) && html
    })
    return /action="(\/undoes\/[0-9a-f-]{36})"/.exec(html)[1]
  }
  const undo = async (visitor, said) => {
    const notice = visitor.page.locator('#live-undoes .banner').filter({ hasText: said })
    await pages.sends(visitor, notice.getByRole('button', { name: /^Undo/ }))
  }

  await step('a job of mine ends while I read something else: the bell says so', async () => {
    alice = await enters('alice')
    await pages.createZone(alice, zone)
    await pages.readyNode(alice, NODE)
    bob = await enters('bob')
    assert.equal(await unread(bob), 0)
    guest = await pages.requestGuest(bob, { name: guestName, project: 'atlas', environment: 'dev', size: 'xxsmall' })
    await bob.page.goto('/docs')
    // The page turns by itself, on whatever page one is.
    await bob.page.getByRole('link', { name: 'Notices, 1 unread' }).waitFor({ timeout: 90_000 })
    await pages.sends(bob, bob.page.getByRole('link', { name: 'Notices, 1 unread' }))
    const row = bob.page.locator('tr[data-unread]')
    assert.match(await row.innerText(), new RegExp(`Create guest ${guestName}[^]*unread[^]*Done`))
    await bob.page.reload()
    assert.equal(await unread(bob), 1, 'to look at the list reads nothing')
    await pages.sends(bob, row.getByRole('button', { name: new RegExp(guestName) }))
    assert.match(pages.here(bob), /^\/jobs\//)
    assert.equal(await unread(bob), 0)
    assert.equal(await unread(alice) > 0, true, 'of the node, which alice made')
  })

  await step('without JavaScript: all of them are marked, and the list keeps them', async () => {
    const plain = await enters('alice', { javaScriptEnabled: false })
    await plain.page.goto('/notices')
    const lines = await plain.page.locator('tbody tr').count()
    await pages.press(plain, 'Mark all as read')
    assert.equal(pages.here(plain), '/notices')
    assert.equal(await plain.page.locator('tr[data-unread]').count(), 0)
    assert.equal(await plain.page.locator('tbody tr').count(), lines)
    assert.equal(await unread(plain), 0)
  })

  await step('an environment', async () => {
    const key = await lab.makeKey(path.join(server.folder, 'bob'))
    await pages.addKey(bob, key.line)
    await bob.page.goto(project)
    await bob.page.locator('select[name=guest]').selectOption({ index: await bob.page.locator('select[name=guest] option').count() - 1 })
    await pages.setUp(bob)
    const html = await pages.untilStatus(bob, `${project}/dev`, 'Nothing live yet', { limit: 120_000 })
    url = /ssh:\/\/git@[^\s<"]+\/dev/.exec(html)[0]
    repository = await Repository.make(path.join(server.folder, 'site'), key.path, { example: 'static-site' })
    const pushed = await repository.push(url)
    assert.equal(pushed.code, 0, pushed.text)
    await pages.untilStatus(bob, `${project}/dev`, 'Live now')
  })

  await step('a push that fails is at the bell of who is of the project, and of nobody else', async () => {
    carol = await enters('carol')
    dave = await enters('dave')
    await allRead(carol)
    assert.deepEqual([await unread(carol), await unread(dave)], [0, 0])
    const recipe = path.join(repository.folder, '.corpus/99_fails')
    writeFileSync(recipe, '#!/bin/sh\nexit 1\n', { mode: 0o755 })
    await repository.commit('It fails')
    assert.notEqual((await repository.push(url)).code, 0)
    await until('the bell of carol', async () => await unread(carol) === 1)
    await carol.page.goto('/notices')
    const row = carol.page.locator('tr[data-unread]')
    assert.match(await row.innerText(), /Deployment #2 of atlas dev by bob[^]*Rolled back/)
    await pages.sends(carol, row.getByRole('button'))
    assert.equal(pages.here(carol), `${project}/deployments/2`)
    assert.equal(await unread(carol), 0)
    assert.equal(await unread(dave), 0)
    assert.doesNotMatch((await dave.read('/notices')).html, /atlas/)
    // It works again: all are told once.
    await repository.git('rm', '--quiet', '.corpus/99_fails')
    await repository.commit('It does not fail')
    assert.equal((await repository.push(url)).code, 0)
    await until('the bell of carol', async () => await unread(carol) === 1)
    assert.match((await carol.read('/notices')).html, /atlas dev works again/)
  })

  await step('somebody else\'s notice is not there', async () => {
    const { html } = await carol.read('/notices')
    const [notice] = /\/notices\/[0-9a-f-]{36}\/read/.exec(html)
    assert.equal((await post(dave, notice)).status(), 404)
    assert.equal(await unread(carol), 1)
  })

  await step('a key that was removed comes back, and only for who removed it', async () => {
    const key = await lab.makeKey(path.join(server.folder, 'carol'))
    await pages.addKey(carol, key.line)
    const fingerprint = await carol.page.locator('[data-value=key-fingerprint]').first().innerText()
    await pages.removeKey(carol, fingerprint)
    const place = await undoAt(carol, '/keys')
    assert.doesNotMatch((await bob.read('/keys')).html, new RegExp(place))
    assert.equal((await post(bob, place)).status(), 404)
    await undo(carol, 'was removed')
    assert.equal(pages.here(carol), '/keys')
    assert.equal((await carol.page.locator('[data-value=key-fingerprint]').first().innerText()).trim(), fingerprint.trim())
    assert.equal(await carol.page.locator('#live-undoes .banner').count(), 0)
    assert.equal((await post(carol, place)).status(), 404, 'once')
  })

  await step('without JavaScript: the same', async () => {
    const plain = await enters('carol', { javaScriptEnabled: false })
    const line = readFileSync(path.join(server.folder, 'carol.pub'), 'utf8').trim()
    await plain.page.goto('/keys')
    const fingerprint = await plain.page.locator('[data-value=key-fingerprint]').first().innerText()
    await pages.removeKey(plain, fingerprint)
    await undo(plain, 'was removed')
    assert.ok((await plain.page.content()).includes(fingerprint.trim()), line)
  })

  await step('a member that was removed has the role again; another maintainer can\'t undo it', async () => {
    const { page } = bob
    await page.goto(project)
    await page.getByLabel('Login name').fill('carol')
    await page.getByLabel('Role', { exact: true }).selectOption('maintainer')
    await pages.press(bob, 'Give the role')
    await page.goto(project)
    await pages.confirmIn(bob, page.locator('[data-member=carol]'))
    const place = await undoAt(bob, project)
    assert.equal((await post(carol, place)).status(), 404)
    assert.doesNotMatch((await alice.read(project)).html, /was removed from/)
    await page.goto(project)
    await undo(bob, 'carol was removed from atlas')
    await page.locator('[data-member=carol]').getByText('maintainer, given here').waitFor()
  })

  await step('a name that was detached leads to its guest again', async () => {
    await pages.attach(bob, guest, site)
    await pages.nameIs(bob, guest, site, 'Attached')
    await pages.detach(bob, guest, site)
    await pages.nameIs(bob, guest, site, null)
    // It is offered as soon as it can be done, without a reload.
    await bob.page.locator('#live-undoes').getByRole('button', { name: /^Undo/ }).waitFor()
    await look.judged(bob, 'undo')
    assert.match(await undoAt(bob, '/dns'), /undoes/)
    await undo(bob, `${site} was detached`)
    assert.equal(pages.here(bob), guest)
    await pages.nameIs(bob, guest, site, 'Attached')
  })

  await step('settings are as they were, unless somebody changed them since', async () => {
    const saved = async (visitor, settings) => {
      await visitor.page.goto(`${project}/dev`)
      await visitor.page.getByLabel('Set here, as YAML').fill(settings)
      await pages.press(visitor, 'Save')
    }
    const set = async visitor => {
      await visitor.page.goto(`${project}/dev`)
      return visitor.page.getByLabel('Set here, as YAML').inputValue()
    }
    await saved(bob, 'archives: 4')
    await saved(bob, 'archives: 5')
    await undo(bob, 'The settings of atlas dev were changed')
    assert.equal((await set(bob)).trim(), 'archives: 4')
    await saved(bob, 'archives: 6')
    await saved(carol, 'archives: 7')
    await bob.page.goto(`${project}/dev`)
    await undo(bob, 'The settings of atlas dev were changed')
    assert.match(await pages.summary(bob).innerText(), /Changed by carol .*archives was 6 and is 7.*nothing was undone/)
    assert.equal((await set(bob)).trim(), 'archives: 7')
  })

  await step('a hidden window learns what happened, and the browser says it as long as it is wanted', async () => {
    const away = await Visitor.open(browser, server, { storageState: await bob.context.storageState() })
    visitors.push(away)
    await away.context.grantPermissions(['notifications'])
    const { page } = away
    await page.addInitScript(() => {
      window.shown = []
      window.Notification = class {
        static permission = localStorage.getItem('asked') ? 'granted' : 'default'
        static async requestPermission() {
          localStorage.setItem('asked', 'yes')
          return (this.permission = 'granted')
        }
        constructor(title, { body }) {
          if (window.refuses) throw new TypeError('Illegal constructor')
          window.shown.push({ title, body, of: this })
        }
        close() { this.closed = true }
      }
      Object.defineProperty(document, 'visibilityState', { get: () => window.hides ? 'hidden' : 'visible' })
    })
    const button = page.locator('[data-notify]')
    const bodies = () => page.evaluate(() => window.shown.map(({ body }) => body))
    /** Something that concerns bob happens, and he looks at nothing of it. */
    const restarts = async () => {
      await page.evaluate(() => (window.hides = true))
      await allRead(bob)
      await bob.page.goto('/docs')
      assert.equal((await post(bob, `${guest}/restart`)).status(), 303)
      await until('the bell of bob', async () => await unread(bob) === 1)
    }
    /** A browser lets a hidden window do something once a minute. */
    const aMinutePasses = async () => {
      await page.clock.fastForward(61_000)
      await page.waitForFunction(() => document.title.startsWith('(1) '))
    }

    await page.clock.install()
    await page.goto('/notices')
    await page.getByRole('button', { name: 'Notify me in this browser', exact: true }).click()
    await page.waitForFunction(() => document.querySelector('[data-notify]').textContent.startsWith('Don\'t'))
    assert.match((await bodies()).join(), /shown like this/)
    await restarts()
    await page.goto('/notices')
    await pages.sends(away, page.getByRole('button', { name: 'Mark all as read' }))
    assert.equal(await button.innerText(), 'Don\'t notify me in this browser', 'also on a page that was exchanged')

    await page.goto('/docs')
    await away.alive()
    await page.clock.pauseAt(new Date(Date.now() + 5_000))
    await restarts()
    await aMinutePasses()
    await page.waitForFunction(() => window.shown.length > 0)
    assert.deepEqual(await bodies(), [`Restart guest ${guestName}`])
    await page.evaluate(() => window.shown[0].of.onclick())
    await page.waitForURL('**/notices')

    await page.clock.resume()
    await button.click()
    await page.waitForFunction(() => document.querySelector('[data-notify]').textContent === 'Notify me in this browser')
    await allRead(bob)
    await page.goto('/docs')
    await away.alive()
    await restarts()
    await aMinutePasses()
    assert.deepEqual(await bodies(), [], 'it is wanted no more')

    // A browser that has it and refuses to show any is asked no more.
    await page.goto('/notices')
    await page.evaluate(() => (window.refuses = true))
    await button.click()
    await button.waitFor({ state: 'hidden' })
  })

  await step('who looks at a job until it is over is told nothing of it', async () => {
    await allRead(bob)
    assert.equal((await post(bob, `${guest}/restart`)).status(), 303)
    const [, job] = /href="(\/jobs\/[0-9a-f-]{36})"[^>]*>Restart guest/.exec((await bob.read('/jobs')).html)
    await bob.page.goto(job)
    await bob.page.locator('.head .status', { hasText: 'Done' }).waitFor({ timeout: 60_000 })
    await until('no unread notice', async () => await unread(bob) === 0)
    assert.match((await bob.read('/notices')).html, new RegExp(job))
  })

  await step('the list and the offers are as accessible as any page', async () => {
    await bob.page.goto('/notices')
    await bob.page.getByRole('table', { name: 'Notices' }).waitFor()
    await look.judged(bob, 'notices')
    await bob.page.keyboard.press('Tab')
    assert.equal(await bob.page.locator('#live-bell a').getAttribute('aria-current'), 'page')
  })
})
