// What pages say is what is so: a thing that could not be made says why, a release whose guest is stopped is not
// "Live", a name that is not answered says so, and whoever may not do something is told who may.
import assert from 'node:assert/strict'
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
const OTHER = 'node2'
const { env } = lab.lab
const zone = `truth.${lab.lab.zone}`
const guestName = `web.${zone}`
const site = `www.${zone}`
const project = '/projects/atlas'

/** Collects, in the page, the times that are drawn as other than those of its reader. */
const watchTimes = () => {
  window.foreign = []
  const drawn = new MessageChannel()
  drawn.port1.onmessage = () => {
    for (const time of document.querySelectorAll('time[data-time=clock], time[data-time=at]')) {
      const date = new Date(time.dateTime)
      const local = [date.getHours(), date.getMinutes(), date.getSeconds()].map(part => String(part).padStart(2, '0')).join(':')
      if (!time.textContent.includes(local)) window.foreign.push(time.outerHTML)
    }
  }
  const frame = () => { drawn.port2.postMessage(0); requestAnimationFrame(frame) }
  frame()
}

/** Takes the record of a name from the DNS server, or puts it there, behind Corpus's back. */
const record = (name, address) => fetch(`${env.CORPUS_LAB_DNS_API}/api/v1/servers/localhost/zones/${zone}.`, {
  method: 'PATCH',
  headers: { 'X-API-Key': env.CORPUS_LAB_DNS_API_KEY, 'content-type': 'application/json' },
  body: JSON.stringify({ rrsets: [{ name: `${name}.`, type: 'A', ttl: 60, changetype: address ? 'REPLACE' : 'DELETE', ...(address && { records: [{ content: address, disabled: false }] }) }] }),
}).then(answer => assert.ok(answer.ok, `the DNS server: ${answer.status}`))

test('pages say what is so', async t => {
  await lab.cleanLab()
  const server = await Server.start('truth')
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
  })
  const step = story(t, visitors, server)
  let alice, bob, carol, guest, nodePage

  const enters = async (login, options) => {
    const visitor = await Visitor.open(browser, server, options)
    visitors.push(visitor)
    return visitor.enter(login, lab.lab.password)
  }
  /** The page turns by itself to what is so. */
  const turns = (visitor, place, word) => visitor.page.locator(place).getByText(word).first().waitFor({ timeout: 40_000 })
  const saved = async (visitor, settings) => {
    await visitor.page.getByLabel('Set here, as YAML').fill(settings)
    await pages.press(visitor, 'Save')
  }

  await step('a host that does not let Corpus in: not linked, with why, and the form as it was', async () => {
    alice = await enters('alice')
    await pages.createZone(alice, zone)
    await pages.probe(alice, { address: lab.lab.nodes[OTHER], network: '10.7.0.1/16' })
    await pages.press(alice, 'This is the host: link it')
    await turns(alice, '.head', 'Not linked')
    const { page } = alice
    const notice = page.locator('.banner.fail')
    assert.match(await notice.innerText(), /not let in/)
    assert.equal(await page.locator('main').getAttribute('data-page'), 'not-created')
    await page.getByRole('link', { name: /Link node/ }).click()
    await page.getByText('Everything it had done was undone').waitFor()
    await page.getByRole('link', { name: 'Open the node' }).click()
    await turns(alice, '.head', 'Not linked')
    await pages.sends(alice, page.getByRole('link', { name: /Change and retry/ }))
    assert.equal(await page.getByLabel('Host name or address', { exact: true }).inputValue(), lab.lab.nodes[OTHER])
    assert.equal(await page.getByLabel('Gateway and prefix').inputValue(), '10.7.0.1/16')
    await alice.read('/nodes').then(({ html }) => assert.match(html, /not linked/))
    await pages.press(alice, 'Read the host key')
    await pages.confirmHost(alice, lab.lab.nodePassword)
    const node = pages.here(alice)
    await pages.untilStatus(alice, node, 'Linked')
    assert.doesNotMatch((await alice.read('/nodes')).html, /not linked/, 'asking again dismisses it')
    await pages.jobEnds(alice, await pages.unlink(alice, node, lab.lab.nodes[OTHER]))
  })

  await step('a guest larger than its node: not created, with why, until it is dismissed', async () => {
    const node = await pages.readyNode(alice, NODE)
    nodePage = node
    assert.match((await alice.read(node)).html, /free for new guests/)
    bob = await enters('bob')
    // A disk that was promised more than there is: the form can't know of it.
    await lab.onNode(NODE, 'mkdir /var/lib/lxc/filler && truncate -s 4T /var/lib/lxc/filler/rootfs.img')
    await pages.fillRequest(bob, { name: `huge.${zone}`, project: 'atlas', environment: 'dev', size: 'xsmall', memory: '512 MiB', backing: 'loop' })
    await pages.press(bob, 'Request the guest')
    const { page } = bob
    await turns(bob, '.head', 'Not created')
    const told = await page.locator('.banner.fail').innerText()
    assert.match(told, /are free.*are needed/)
    // The node says the same number.
    const [free] = /[\d.]+ [kMGT]?B(?= are free)/.exec(told)
    await until('the node to say what is promised', async () => (await alice.read(node)).html.includes(`${free} of `)
      && /free for new guests \([\d.]+ GB promised\)/.test((await alice.read(node)).html))
    await look.judged(bob, 'not-created')
    await page.goto('/guests')
    await page.getByText(`huge.${zone} on`).first().waitFor()
    await pages.sends(bob, page.getByRole('link', { name: /Change and retry/ }))
    const filled = await Promise.all(['name', 'size', 'memory', 'backing'].map(name => page.locator(`[name=${name}]`).inputValue()))
    assert.deepEqual(filled, [`huge.${zone}`, 'xsmall', '512 MiB', 'loop'])
    await lab.onNode(NODE, 'rm -r /var/lib/lxc/filler')
    await page.goto('/guests')
    await pages.press(bob, 'Dismiss')
    assert.doesNotMatch((await bob.read('/guests')).html, /huge\./)
  })

  await step('a creation that one cancels oneself is no failure', async () => {
    // Something else holds the guest on its node, so that the job is there to be cancelled.
    const held = `/var/lib/corpus/locks/guest-soon.${zone}`
    await lab.onNode(NODE, `setsid flock -x ${held} sh -c 'echo $$ >/run/truth-holds; exec sleep 120' >/dev/null 2>&1 </dev/null &`)
    await until('the guest to be held', () => lab.onNode(NODE, 'test -s /run/truth-holds').then(() => true))
    const made = await pages.requestGuest(bob, { name: `soon.${zone}`, project: 'atlas', environment: 'dev', size: 'xxsmall' })
    const job = /\/jobs\/[0-9a-f-]{36}/.exec((await bob.read(made)).html)?.[0]
    await bob.page.goto(job)
    await pages.press(bob, 'Cancel the job')
    await lab.onNode(NODE, 'kill "$(cat /run/truth-holds)"; rm /run/truth-holds')
    await pages.untilStatus(bob, job, 'Cancelled', { never: ['Undone', 'Stuck', 'Done'] })
    assert.match((await bob.read(job)).html, /By bob\./)
    await bob.page.goto(made)
    await turns(bob, '.head', 'Not created')
    assert.match(await bob.page.locator('.banner').first().innerText(), /Cancelled by bob/)
    assert.equal(await bob.page.locator('.banner.fail').count(), 0)
    await pages.press(bob, 'Dismiss')
  })

  await step('a site of prod', async () => {
    carol = await enters('carol')
    const key = await lab.makeKey(path.join(server.folder, 'bob'))
    await pages.addKey(bob, key.line)
    guest = await pages.requestGuest(bob, { name: guestName, project: 'atlas', environment: 'prod', size: 'xxsmall' })
    await pages.untilStatus(bob, guest, 'Running')
    await pages.attach(bob, guest, site)
    await pages.nameIs(bob, guest, site, 'Attached')
    await bob.page.goto(project)
    await bob.page.locator('select[name=guest]').selectOption({ index: await bob.page.locator('select[name=guest] option').count() - 1 })
    await pages.setUp(bob)
    const html = await pages.untilStatus(bob, `${project}/prod`, 'Nothing live yet', { limit: 120_000 })
    const url = /ssh:\/\/git@[^\s<"]+\/prod/.exec(html)[0]
    const repository = await Repository.make(path.join(server.folder, 'site'), key.path, { example: 'static-site' })
    for (const pushes of [1, 2]) {
      if (pushes === 2) await repository.commit('Another one')
      const pushed = await repository.push(url)
      assert.equal(pushed.code, 0, pushed.text)
    }
    await pages.untilStatus(bob, `${project}/prod`, 'Live now')
    await until('both deployments are told of', async () => {
      const { html: list } = await bob.read('/deployments')
      return list.match(/>Live now</g)?.length === 1 && list.match(/>Was live</g)?.length === 1
    })
  })

  await step('an environment that could not be made says why where it would be', async () => {
    const { page } = bob
    const dev = await pages.requestGuest(bob, { name: `dev.${zone}`, project: 'atlas', environment: 'dev', size: 'xxsmall' })
    await pages.untilStatus(bob, dev, 'Running')
    const held = '/var/lib/corpus/locks/project-atlas'
    await lab.onNode(NODE, `lxc-attach -n dev.${zone} -- sh -c 'mkdir -p /var/lib/corpus/locks; setsid flock -x ${held} sh -c "echo \\$\\$ >/run/truth-holds; exec sleep 300" >/dev/null 2>&1 </dev/null &'`)
    await page.goto(project)
    await page.locator('select[name=guest]').selectOption({ index: await page.locator('select[name=guest] option').count() - 1 })
    await pages.setUp(bob)
    await page.goto(`${project}/dev`)
    const job = /\/jobs\/[0-9a-f-]{36}/.exec((await bob.read(`${project}/dev`)).html)[0]
    await carol.page.goto(`${project}/dev`)
    // Between its last step back and the end of the job it is neither there nor told of; what her page asks then is not found.
    carol.tolerated = /status of 404 .*\/projects\/atlas\/dev\)/
    await page.goto(job)
    await pages.press(bob, 'Cancel the job')
    await lab.onNode(NODE, `lxc-attach -n dev.${zone} -- sh -c 'kill "$(cat /run/truth-holds)"'`)
    await pages.untilStatus(bob, job, 'Cancelled', { never: ['Undone', 'Stuck', 'Done'] })
    // Who had its page open is led there, not to a page that is not found.
    await turns(carol, '.head', 'Not set up')
    assert.equal(await carol.page.getByRole('link', { name: /Change and retry/ }).count(), 0)
    assert.match((await bob.read(project)).html, /not set up/)
    await page.goto(`${project}/dev`)
    assert.equal(await page.locator('main').getAttribute('data-page'), 'not-created')
    await pages.sends(bob, page.getByRole('link', { name: /Change and retry/ }))
    assert.match(await page.locator('select[name=guest] option:checked').innerText(), /dev\./)
    await pages.setUp(bob)
    await pages.untilStatus(bob, `${project}/dev`, 'Nothing live yet', { limit: 120_000 })
    assert.doesNotMatch((await bob.read(project)).html, /not set up/, 'asking again dismisses it')
  })

  await step('a developer is not shown a push that would be refused, and a refusal says who may', async () => {
    const { html } = await carol.read(project)
    assert.ok(!html.includes('git push prod') && html.includes('Maintainers push to prod'))
    const refused = await carol.context.request.post(`${guest}/names`, { form: { name: `x.${zone}` }, headers: { origin: server.url }, maxRedirects: 0 })
    assert.equal(refused.status(), 403)
    assert.match(await refused.text(), /takes the role maintainer in atlas, and you are developer there\. [^<]*bob[^<]* that role/)
    for (const place of [`${guest}/destroy`, `${project}/remove`, `${project}/prod/remove`]) {
      const { status, html } = await carol.read(place)
      assert.equal(status, 403, place)
      assert.match(html, /takes the role maintainer in atlas, and you are developer there\. [^<]*bob[^<]* that role/, place)
    }
    const asked = await carol.context.request.post('/projects', { form: { name: 'carols' }, headers: { origin: server.url }, maxRedirects: 0 })
    assert.equal(asked.status(), 403)
    assert.match(await asked.text(), /Only operators may do this\. [^<]*alice[^<]* operator/)
    assert.match((await carol.read('/projects/new')).html, /Ask for a project/, 'so the page asks them')
  })

  await step('destroying the guest of an environment is not asked for only to be refused', async () => {
    await bob.page.goto(`${guest}/destroy`)
    await bob.page.getByRole('link', { name: 'Remove prod from this guest' }).waitFor()
    assert.equal(await bob.page.getByRole('button', { name: 'Destroy this guest' }).count(), 0)
    assert.equal((await bob.read(`${project}/prod/drill`)).status, 409)
  })

  /** What the last line of a log says that came by itself, and what it says when the page is read anew. */
  const lastLine = async ({ page }, lines) => {
    const last = () => page.locator(lines).last().innerText()
    const live = await last()
    await page.reload()
    // The server says UTC; the page makes that their own time as soon as its script runs.
    await until(`"${live}" to be said by the page read anew`, async () => await last() === live, { limit: 10_000 })
    return live
  }

  await step('restarting prod and deploying to it ask once; who looks sees it to the last line, in their own time', async () => {
    const tokyo = await enters('bob', { timezoneId: 'Asia/Tokyo' })
    const held = `/var/lib/corpus/locks/guest-${guestName}`
    await lab.onNode(NODE, `setsid flock -x ${held} sh -c 'echo $$ >/run/truth-holds; exec sleep 120' >/dev/null 2>&1 </dev/null &`)
    await until('the guest to be held', () => lab.onNode(NODE, 'test -s /run/truth-holds').then(() => true))
    await pages.power(bob, guest, 'Restart')
    const watched = async place => {
      await tokyo.page.goto(place)
      await tokyo.page.locator('time[data-local]').first().waitFor({ state: 'attached' })
      await tokyo.page.evaluate(watchTimes)
    }
    await watched(/\/jobs\/[0-9a-f-]{36}/.exec((await bob.read(guest)).html)[0])
    await lab.onNode(NODE, 'kill "$(cat /run/truth-holds)"; rm /run/truth-holds')
    await turns(tokyo, '#live-state', 'Done')
    assert.deepEqual(await tokyo.page.evaluate(() => window.foreign), [])
    assert.match(await lastLine(tokyo, '#log div:has(> time)'), /\S/)
    await pages.untilStatus(bob, guest, 'Running', { limit: 120_000 })

    await bob.page.goto(`${project}/deployments/2`)
    await bob.page.locator('summary', { hasText: /^Deploy [0-9a-f]{7} again$/ }).click()
    assert.match(await bob.page.locator('.confirm[open]').innerText(), /prod of atlas/)
    await bob.page.getByRole('button', { name: /^Yes, deploy [0-9a-f]{7} again$/ }).waitFor()
    assert.equal(await bob.page.getByRole('button', { name: /^Deploy/ }).count(), 0)
    await pages.sends(bob, bob.page.getByRole('button', { name: /^Yes, deploy [0-9a-f]{7} again$/ }))
    await watched(`${project}/deployments/3`)
    await turns(tokyo, '#live-state', 'Live now')
    assert.deepEqual(await tokyo.page.evaluate(() => window.foreign), [])
    assert.match(await lastLine(tokyo, '#live-log .lines > div'), /\S/)
  })

  await step('stopping prod asks once, and then nothing is live', async () => {
    await carol.page.goto(`${project}/prod`)
    await turns(carol, '.head', 'Live now')
    await bob.page.goto(guest)
    await bob.page.locator('summary', { hasText: 'Stop' }).click()
    assert.match(await bob.page.locator('.confirm[open]').innerText(), new RegExp(`prod of atlas.*${site}`, 's'))
    await pages.sends(bob, bob.page.getByRole('button', { name: 'Yes, stop' }))
    await turns(carol, '.head', 'Released, guest stopped')
    assert.match((await carol.read('/projects')).html, /Released, guest stopped/)
    assert.match((await carol.read('/deployments')).html, />Released, guest stopped</)
    await carol.page.goto(guest)
    await turns(carol, '#live-names', /Does not answer|Answers 503/)
    await pages.press(bob, 'Start')
    await carol.page.goto(`${project}/prod`)
    await turns(carol, '.head', 'Live now')
    await turns(carol, '#live-about', 'Answers 200')
  })

  await step('a web server that ended is seen', async () => {
    await lab.onNode(NODE, `lxc-attach -n ${guestName} -- systemctl stop atlas-web.service`)
    await turns(carol, '.head', /Released, (answers 50\d|does not answer)/)
    // Said of the deployment, too, in lists and on its page.
    const list = (await carol.read('/deployments')).html
    const live = /\/projects\/atlas\/deployments\/\d+/.exec(list)[0]
    for (const html of [list, (await carol.read(live)).html, (await carol.read('/projects')).html]) {
      assert.match(html, />Released, (answers 50\d|does not answer)</)
      assert.doesNotMatch(html, />Live now</)
    }
  })

  await step('a name that the DNS server does not answer any more says so, and since when', async () => {
    await record(site, null)
    await carol.page.goto('/dns')
    await turns(carol, '#live-names', 'Not answered')
    assert.match(await carol.page.locator('#live-names').innerText(), /no address for it/)
    await record(site, lab.lab.nodes[NODE])
    await turns(carol, '#live-names', 'Attached')
  })

  await step('settings in two tabs: the second is told what changed and by whom', async () => {
    const other = await enters('bob')
    for (const visitor of [bob, other]) await visitor.page.goto(`${project}/prod`)
    await saved(other, 'archives: 5')
    await saved(bob, 'archives: 4')
    assert.match(await pages.summary(bob).innerText(), /Changed by bob .*: archives is 5/)
    assert.equal(await bob.page.getByLabel('Set here, as YAML').inputValue(), 'archives: 4')
    assert.equal((await bob.page.locator('[data-value=settings-now]').innerText()).trim(), 'archives: 5')
    await saved(bob, 'archives: many')
    assert.match(await pages.errorAt(bob, 'settings').innerText(), /a number from 0 to 100, and “many” is not/)
  })

  await step('the name of a node in two tabs: the second sees what the first made it', async () => {
    const other = await enters('alice')
    const named = async (visitor, name) => {
      await visitor.page.getByLabel('Known as').fill(name)
      await pages.press(visitor, 'Save the name')
    }
    for (const visitor of [alice, other]) await visitor.page.goto(nodePage)
    await named(other, 'Paris')
    await named(alice, 'Rome')
    assert.match(await pages.summary(alice).innerText(), /Changed by alice .*: the name was none and is Paris/)
    assert.equal(await alice.page.getByLabel('Known as').inputValue(), 'Rome')
    assert.equal(await alice.page.locator('#f-name-now').innerText(), 'Now: Paris')
    await named(alice, '')
    assert.ok(!(await alice.read(nodePage)).html.includes('value="Paris"'))
  })

  await step('a network that is refused is told the rule that it breaks', async () => {
    await pages.probe(alice, { address: lab.lab.nodes[OTHER], network: '8.8.8.0/24' })
    assert.match(await pages.errorAt(alice, 'network').innerText(), /private network/)
  })
})
