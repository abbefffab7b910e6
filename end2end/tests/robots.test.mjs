// A program of the project deploys: its maintainer makes a robot with a token and a deploy key on its page, and the steps
// of docs/ci.md are run as they stand there, by the real git, ssh, curl and corpus, in the robot's name.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { Visitor, launch } from '../browser.mjs'
import { Repository } from '../git.mjs'
import * as lab from '../lab.mjs'
import * as pages from '../pages.mjs'
import { run, until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const NODE = 'node1'
const zone = `robots.${lab.lab.zone}`
const site = `www.${zone}`
const project = '/projects/atlas'
const robots = `${project}/robots`
const program = fileURLToPath(new URL('../../target/corpus/corpus', import.meta.url))
const document = readFileSync(fileURLToPath(new URL('../../docs/ci.md', import.meta.url)), 'utf8')
const live = async () => (await lab.httpGet(lab.lab.nodes[NODE], site)).body
const page = text => `<!doctype html><html lang="en"><title>Site</title><h1>${text}</h1></html>\n`

/** The text of the first block of a section. */
const block = section => new RegExp(`## ${section}\\n[\\s\\S]*?\`\`\`\\w+\\n([\\s\\S]*?)\`\`\``).exec(document)[1]
/** The shell steps of the Jenkinsfile, as Jenkins would give them to a shell. */
const jenkins = () => [...block('Jenkins').matchAll(/sh (?:'''([\s\S]*?)'''|'([^'\n]+)')/g)].map(([, long, short]) => long ?? short)
/** The lines of GitLab's `script`. */
const gitlab = () => [...block('GitLab').split('script:\n')[1].matchAll(/^ {4}- (.*)$/gm)].map(([, line]) => line).join('\n')
/** The lines of GitHub's `run`. */
const github = () => block('GitHub').split('run: |\n')[1].replace(/^ {10}/gm, '')

test('a robot deploys', async t => {
  await lab.cleanLab()
  const server = await Server.start('robots')
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
  })
  const step = story(t, visitors, server)
  let alice, bob, carol, guest, repository, key, token, folder

  const enters = async login => {
    const visitor = await Visitor.open(browser, server)
    visitors.push(visitor)
    await visitor.enter(login, lab.lab.password)
    return visitor
  }
  /** Runs a step where the project is checked out, as a build does; the code, and all that it printed. */
  const build = (script, shell = ['/bin/sh', '-xe']) => new Promise(resolve => {
    const env = {
      PATH: `${folder}/bin:/usr/bin:/bin`, HOME: folder, LC_ALL: 'C',
      CORPUS_URL: server.url, CORPUS_GIT: `ssh://git@127.0.0.1:${server.gitPort}`, CORPUS_TOKEN: token, CORPUS_KEY: key.path,
      CORPUS_KNOWN_HOSTS: path.join(folder, 'known_hosts'), GITHUB_RUN_ID: '7', GITHUB_RUN_ATTEMPT: String(Math.random()).slice(2, 8),
    }
    const [name, ...flags] = shell
    execFile(name, [...flags, '-c', script], { cwd: repository.folder, env, timeout: 120_000, maxBuffer: 64 << 20 }, (error, out, err) =>
      resolve({ code: error ? error.code ?? -1 : 0, text: `${out}${err}` }))
  })
  const built = async (script, shell) => {
    const ended = await build(script, shell)
    assert.equal(ended.code, 0, `${script}\n${ended.text}`)
    return ended.text
  }
  const change = async text => {
    writeFileSync(path.join(repository.folder, 'site/index.html'), page(text))
    await repository.commit(text)
  }

  await step('a node, and a guest of staging under a name', async () => {
    alice = await enters('alice')
    await pages.createZone(alice, zone)
    await pages.readyNode(alice, NODE)
    bob = await enters('bob')
    carol = await enters('carol')
    guest = await pages.requestGuest(bob, { name: `web.${zone}`, project: 'atlas', environment: 'staging', size: 'xxsmall' })
    await pages.untilStatus(bob, guest, 'Running')
    await pages.attach(bob, guest, site)
    await pages.nameIs(bob, guest, site, 'Attached')
    await bob.page.goto(project)
    await bob.page.locator('select[name=guest]').selectOption({ index: await bob.page.locator('select[name=guest] option').count() - 1 })
    await pages.setUp(bob)
    await pages.untilStatus(bob, `${project}/staging`, 'Nothing live yet', { limit: 120_000 })
  })

  await step('bob, a maintainer, makes a robot for staging; carol, a developer, is offered none', async () => {
    await carol.page.goto(project)
    assert.equal(await carol.page.getByRole('link', { name: 'Robots', exact: true }).count(), 0)
    assert.equal((await carol.read(robots)).status, 403)
    await bob.page.goto(project)
    await bob.page.getByRole('link', { name: 'Robots', exact: true }).click()
    await bob.page.getByText('No robot').waitFor()
    await bob.page.getByLabel('Name').fill('ci')
    await pages.press(bob, 'Make the robot')
    await pages.errorAt(bob, 'environments').waitFor()
    assert.equal(await bob.page.getByLabel('Name').inputValue(), 'ci', 'what was typed is there again')
    await bob.page.getByLabel('staging').check()
    await pages.press(bob, 'Make the robot')
    assert.equal(pages.here(bob), `${robots}/ci`)
  })

  await step('bob gives it a deploy key and a token, whose text is shown once', async () => {
    folder = path.join(server.folder, 'build')
    mkdirSync(path.join(folder, 'bin'), { recursive: true })
    symlinkSync(program, path.join(folder, 'bin/corpus'))
    key = await lab.makeKey(path.join(folder, 'key'))
    await bob.page.locator('#f-robot-key-line').fill(key.line)
    await pages.press(bob, 'Add the key')
    await bob.page.locator('#keys').getByText('Fetching and pushing').waitFor()
    await bob.page.locator('#f-robot-token-name').fill('Jenkins')
    await pages.press(bob, 'Make the token')
    token = await bob.page.locator('[data-copy^=corpus_]').first().getAttribute('data-copy')
    await bob.screenshot('robot')
    await bob.page.goto(`${robots}/ci`)
    assert.equal(await bob.page.locator('[data-copy^=corpus_]').count(), 0)
    const scanned = await run('ssh-keyscan', ['-p', String(server.gitPort), '127.0.0.1'])
    writeFileSync(path.join(folder, 'known_hosts'), scanned)
  })

  await step('the steps of the Jenkinsfile deploy, with the log in the console', async () => {
    repository = await Repository.make(path.join(server.folder, 'site'), key.path, { example: 'static-site', fill: folder => writeFileSync(path.join(folder, 'site/index.html'), page('By a robot')) })
    const [push, again] = jenkins()
    const pushed = await built(push)
    assert.match(pushed, /remote: .*prove/, pushed)
    assert.match(await live(), /By a robot/)
    const redone = await built(again)
    assert.match(redone, /done/, redone)
    assert.match(redone, /Deploy/i, redone)
    await until('both are told of', async () => {
      const { html } = await carol.read(`${project}/deployments/2`)
      return html.includes('atlas/ci (robot)')
    })
    await carol.page.goto(`${project}/deployments/1`)
    await carol.page.getByText('atlas/ci (robot)').first().waitFor()
  })

  await step('so do those of GitLab and GitHub', async () => {
    await change('By GitLab')
    await built(gitlab(), ['/bin/bash', '-e'])
    assert.match(await live(), /By GitLab/)
    const text = await built(github(), ['/bin/bash', '-e', '-o', 'pipefail'])
    assert.match(text, /^live/m, text)
  })

  await step('what fails fails the build with the reason, and everything is as before', async () => {
    mkdirSync(path.join(repository.folder, '.corpus'), { recursive: true })
    writeFileSync(path.join(repository.folder, '.corpus/90_no.sh'), '#!/bin/sh\necho the reason is known >&2\nexit 3\n', { mode: 0o755 })
    await change('Never live')
    const failed = await build(jenkins()[0])
    assert.notEqual(failed.code, 0)
    assert.match(failed.text, /the reason is known/, failed.text)
    assert.match(failed.text, /rejected/, failed.text)
    assert.match(await live(), /By GitLab/)
  })

  await step('it is for staging, and for nothing else', async () => {
    const prod = await build(jenkins()[0].replaceAll('atlas/staging', 'atlas/prod'))
    assert.match(prod.text, /this robot is not for prod/, prod.text)
    const order = await build(jenkins()[1].replaceAll('staging', 'prod'))
    assert.equal(order.code, 1, order.text)
    assert.match(order.text, /not for prod/, order.text)
    const stopped = await build(`corpus guest stop web.${zone}`)
    assert.equal(stopped.code, 1, stopped.text)
    assert.match(stopped.text, /token is not good for this/, stopped.text)
    const shown = pages.valueIn((await bob.read(guest)).html, 'ssh')
    await assert.rejects(lab.pasted(shown, key.path), /Permission denied/)
  })

  await step('its page says when it was used; the audit, that it was a robot', async () => {
    await bob.page.goto(`${robots}/ci`)
    for (const card of ['#keys', '#tokens']) assert.doesNotMatch(await bob.page.locator(`${card} [data-label="Last used"]`).textContent(), /never/)
    await alice.page.goto('/audit?actor=atlas%2Fci')
    await alice.page.getByText('atlas/ci (robot)').first().waitFor()
  })

  await step('bob ends it: its token and its key are good for nothing more', async () => {
    await bob.page.goto(`${robots}/ci`)
    await bob.page.locator('summary', { hasText: 'End robot' }).click()
    await pages.press(bob, 'Yes, end robot')
    await bob.page.getByText('No robot').waitFor()
    assert.match((await build(jenkins()[0])).text, /Permission denied/)
    const refused = await build(jenkins()[1])
    assert.notEqual(refused.code, 0)
    assert.match(refused.text, /token/, refused.text)
    const { html } = await carol.read(`${project}/deployments/1`)
    assert.ok(html.includes('atlas/ci (robot)'), 'what it did stays')
  })
})
