// A newer image: what lies in the folder is found, brought to a node and what new guests are clones of, while those that are
// there stay on theirs; what is half a copy is told and used by nobody.
import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, renameSync, rmSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import test from 'node:test'
import { Visitor, launch } from '../browser.mjs'
import { Database } from '../database.mjs'
import * as lab from '../lab.mjs'
import { violations } from '../look.mjs'
import * as pages from '../pages.mjs'
import { run, until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const zone = `images.${lab.lab.zone}`
const names = { old: `old.${zone}`, kept: `kept.${zone}`, new: `new.${zone}`, other: `other.${zone}`, golden: `golden.${zone}` }
const NODE = 'node1'
const MARK = 'etc/second-version'


test('images have versions', async t => {
  await lab.cleanLab()
  const database = await Database.make('corpus_images')
  const folder = mkdtempSync(path.join(os.tmpdir(), 'corpus-images-'))
  const archive = name => path.join(folder, `${name}.tar.zst`)
  symlinkSync(lab.lab.env.CORPUS_LAB_IMAGE, archive('debian-12'))
  const settings = { database_url: database.url, image_folder: folder, images: ['debian-12', 'another'] }
  const server = await Server.start('images', { '': settings })
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
    if (!server.failed) await database.remove()
  })
  const step = story(t, visitors, server)
  let alice, bob, node
  const guests = {}

  const enters = async login => {
    const visitor = await Visitor.open(browser, server)
    visitors.push(visitor)
    return visitor.enter(login, lab.lab.password)
  }
  const makes = async (which, values = {}) => {
    guests[which] = await pages.requestGuest(bob, { name: names[which], project: 'atlas', environment: 'dev', size: 'xxsmall', ...values })
    await pages.untilStatus(bob, guests[which], 'Running', { limit: 120_000 })
  }
  const onNode = async () => (await lab.onNode(NODE, 'ls /var/lib/corpus/images')).split('\n').filter(Boolean).sort()
  const labels = async name => (await database.rows(`select label from image_versions where name = '${name}' order by made_at desc`)).map(([label]) => label)
  const brings = async (state = 'Done') => {
    await alice.page.goto(node)
    await pages.press(alice, 'Bring new ones')
    const job = await until('its job', async () => {
      const [row] = await database.rows("select id from jobs where kind = 'node_images' order by queue_order desc limit 1")
      return `/jobs/${row[0]}`
    })
    await pages.jobEnds(alice, job, state, 120_000)
  }
  const marked = name => lab.onNode(NODE, `lxc-attach -n ${name} -- sh -c 'test -e /${MARK} && echo marked || echo plain'`).then(text => text.trim())
  /** Puts an archive there as docs/images.md says: whole, by one move. */
  const put = (name, from, seconds) => {
    const at = Date.now() / 1000 + seconds
    utimesSync(from, at, at)
    renameSync(from, archive(name))
  }

  await step('two guests, clones of what is there', async () => {
    alice = await enters('alice')
    bob = await enters('bob')
    node = await pages.readyNode(alice, NODE)
    await pages.createZone(alice, zone)
    await makes('old')
    await makes('kept')
    const [first] = await labels('debian-12')
    assert.deepEqual(await onNode(), [first])
    assert.match(pages.plain((await bob.read(guests.old)).html), new RegExp(`Clone of ${first}`))
  })

  await step('half a copy is told, and no guest is made of it', async () => {
    copyFileSync(lab.lab.env.CORPUS_LAB_IMAGE, archive('half'))
    truncateSync(archive('half'), 20_000_000)
    put('debian-12', archive('half'), 10)
    await alice.page.goto('/images')
    await alice.page.getByText("What is in the folder can't be used").waitFor()
    assert.deepEqual(await violations(alice.page), [])
    await alice.screenshot('half-a-copy')
    await brings()
    assert.equal((await labels('debian-12')).length, 1)
    assert.equal((await bob.read('/images')).status, 403)
  })

  await step('a newer version comes to the node, and guests stay on theirs', async () => {
    const tar = path.join(folder, 'second.tar')
    await run('zstd', ['-q', '-d', '-f', lab.lab.env.CORPUS_LAB_IMAGE, '-o', tar])
    writeFileSync(path.join(folder, path.basename(MARK)), 'of the second version\n')
    await run('tar', ['--append', '--file', tar, '--owner=0', '--group=0', `--transform=s,^,./etc/,`, '--directory', folder, path.basename(MARK)])
    await run('zstd', ['-q', '-1', '--rm', tar, '-o', archive('second')])
    put('debian-12', archive('second'), 20)
    await brings()
    const [second, first] = await labels('debian-12')
    assert.deepEqual(await onNode(), [first, second].sort())
    await makes('new')
    assert.deepEqual([await marked(names.new), await marked(names.old)], ['marked', 'plain'])
    assert.match(pages.plain((await bob.read(guests.old)).html), /New guests are made from a newer one/)
    assert.doesNotMatch(pages.plain((await bob.read(guests.new)).html), /made from a newer one/)
    await alice.page.goto('/images')
    await alice.page.getByText(second).waitFor()
    assert.deepEqual(await violations(alice.page), [])
    await alice.screenshot('images')
  })

  await step('another image comes with the first guest that asks for it', async () => {
    copyFileSync(lab.lab.env.CORPUS_LAB_IMAGE, archive('copy'))
    put('another', archive('copy'), 0)
    await until('it is found', async () => (await labels('another')).length === 1, { limit: 90_000 })
    await makes('other', { image: 'another' })
    const [label] = await labels('another')
    assert.ok((await onNode()).includes(label))
    assert.match(pages.plain((await bob.read(guests.other)).html), new RegExp(`Clone of ${label}`))
  })

  await step('what a guest has in an older version than its newest image is told on its page', async () => {
    const told = async (which, words) => {
      // Its node is asked once in an hour.
      await database.rows('update nodes set updates_asked_at = null')
      await until(`${which} is told of`, async () => words.test(pages.plain((await bob.read(guests[which])).html)), { limit: 90_000, pause: 500 })
    }
    await told('old', /None that its image has/)
    const status = '/var/lib/dpkg/status'
    const older = `sed -i -e '/^Package: dpkg$/,/^$/s/^Version: .*/Version: 0.1/' -e '/^Package: tar$/,/^$/s/^Version: .*/Version: 0.1/' ${status}`
    await lab.onNode(NODE, `lxc-attach -n ${names.old} -- ${older}`)
    await told('old', /It lacks 2.*dpkg, tar.*Beside debian-12-/s)
    await bob.page.goto(guests.old)
    await bob.page.getByText('It lacks 2').click()
    assert.deepEqual(await violations(bob.page), [])
    await bob.screenshot('updates')
    // What is no list of packages is no reason to be told nothing of others.
    await lab.onNode(NODE, `lxc-attach -n ${names.kept} -- sh -c 'head -c 40000000 /dev/zero > ${status}'`)
    await database.rows('update guests set lacks_at = null, lacks_count = null')
    await told('old', /It lacks 2/)
    assert.match(pages.plain((await bob.read(guests.kept)).html), /Updates\s+not known/)
  })

  await step('bob makes an image of a guest that is as he wants the next ones', async () => {
    await lab.onNode(NODE, `lxc-attach -n ${names.new} -- sh -c 'mkdir -p /opt/app /srv/projects/x && echo ours > /opt/app/it && echo secret > /srv/projects/x/pillar'`)
    await bob.page.goto('/projects/atlas')
    await bob.page.getByRole('link', { name: 'Images', exact: true }).click()
    await bob.page.getByText('There is none').waitFor()
    await bob.page.locator('[name=guest]').selectOption({ label: names.new })
    await bob.page.locator('[name=name]').fill('debian-12')
    await pages.press(bob, 'Make an image')
    await bob.page.getByText('There is an image debian-12 for everybody').first().waitFor()
    await bob.page.locator('[name=name]').fill('golden')
    await bob.page.locator('[name=comment]').fill('with our app')
    await pages.press(bob, 'Make an image')
    const [label] = await until('it is made', async () => {
      const made = await labels('golden')
      return made.length === 1 && made
    }, { limit: 120_000, pause: 200 })
    await bob.page.goto('/projects/atlas/images')
    await bob.page.getByText(label).waitFor()
    assert.deepEqual(await violations(bob.page), [])
    await bob.screenshot('project-images')
    await bob.page.getByRole('link', { name: 'A new guest of golden' }).click()
    await pages.heading(bob, 'Request a guest')
    assert.equal(await bob.page.locator('[name=image]').inputValue(), 'golden')
    await bob.page.locator('[name=name]').fill(names.golden)
    await bob.page.locator('[name=size]').selectOption('xxsmall')
    await pages.press(bob, 'Request the guest')
    await pages.heading(bob, names.golden)
    guests.golden = pages.here(bob)
    await pages.untilStatus(bob, guests.golden, 'Running', { limit: 120_000 })
    assert.match(pages.plain((await bob.read(guests.golden)).html), new RegExp(`Clone of ${label}`))
    const inside = await lab.onNode(NODE, `lxc-attach -n ${names.golden} -- sh -c 'cat /opt/app/it /etc/hostname; ls -A /srv/projects'`)
    assert.equal(inside.trim(), `ours\n${names.golden}`)
    await bob.page.goto('/projects/atlas/images')
    assert.equal(await bob.page.locator('summary', { hasText: 'Remove' }).count(), 0, 'a guest is a clone of it')
    await pages.jobEnds(bob, await pages.destroy(bob, guests.golden, names.golden))
    await bob.page.goto('/projects/atlas/images')
    await pages.confirmIn(bob, bob.page.locator('section.card').filter({ hasText: label }))
    await bob.page.getByText('There is none').waitFor()
    await brings()
    assert.ok(!(await onNode()).includes(label), 'its nodes let go of it')
  })

  await step('what no guest is a clone of goes, and what one is stays', async () => {
    await pages.jobEnds(bob, await pages.destroy(bob, guests.old, names.old))
    await database.rows("update image_versions set found_at = found_at - interval '2 hours'")
    await brings()
    const [second, first] = await labels('debian-12')
    assert.ok((await onNode()).includes(first), 'one stands on it')
    await pages.jobEnds(bob, await pages.destroy(bob, guests.kept, names.kept))
    await brings()
    assert.ok(!(await onNode()).includes(first), 'nobody does any more')
    assert.ok((await onNode()).includes(second))
    assert.equal(await marked(names.new), 'marked')
  })

  await step('everything is taken away again', async () => {
    for (const which of ['new', 'other']) await pages.jobEnds(bob, await pages.destroy(bob, guests[which], names[which]))
    await pages.removeZone(alice, zone)
    const address = lab.lab.nodes[NODE]
    await pages.jobEnds(alice, await pages.unlink(alice, node, address))
    await lab.untilClean(NODE)
  })
})
