// What tenants that are apart cost and spare, for scripts/measure-tenants: one JSON object on standard output.
//
//   measure.mjs login ROUNDS      request to first SSH login, by the job and through the browser
//   measure.mjs neighbour SECONDS a neighbour's page and the controller's, beside a guest that does all it can, and
//                                 without it
import { setTimeout as sleep } from 'node:timers/promises'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { Visitor, launch } from '../browser.mjs'
import { NODE, World, lab, pages, run, until, zone } from './world.mjs'

const [what, amount] = [process.argv[2], Number(process.argv[3])]
const sorted = numbers => [...numbers].sort((a, b) => a - b)
const at = (numbers, part) => sorted(numbers)[Math.min(numbers.length - 1, Math.floor(numbers.length * part))]

/** Milliseconds from the request to the first login, and of the job alone. */
async function byForm(world, number) {
  const name = `m${number}.${zone}`
  const form = await world.bob.requestForm({ name, project: 'atlas', size: 'xxsmall', environment: 'prod', node: world.node.split('/').at(-1) })
  const begin = performance.now()
  const place = await world.bob.sends('/guests', form)
  const shown = await until('the ssh command', async () => pages.valueIn((await world.bob.get(place)).html, 'ssh'), { pause: 5 })
  await until('a login', () => lab.pasted(shown, world.bob.key.path, 'true').then(() => true), { pause: 5 })
  const login = performance.now() - begin
  await pages.untilStatus(world.bob, place, 'Running')
  const [[id, job]] = await world.database.rows(`select id, extract(epoch from ended_at - created_at) * 1000 from jobs where guest_id = '${place.split('/').at(-1)}' and kind = 'guest_create'`)
  const steps = await world.database.rows(`select name, extract(epoch from ended_at - started_at) * 1000 from job_steps where job_id = '${id}' order by index`)
  await world.bob.destroy(place, name)
  return { login, job: Number(job), steps: Object.fromEntries(steps.map(([name, ms]) => [name, Number(ms)])) }
}

async function byBrowser(world, bob, number) {
  const name = `b${number}.${zone}`
  await pages.fillRequest(bob, { name, project: 'atlas', environment: 'prod', size: 'xxsmall', node: world.node.split('/').at(-1) })
  const begin = performance.now()
  await bob.page.getByRole('button', { name: 'Request the guest' }).click()
  await bob.page.waitForURL(/\/guests\/[0-9a-f-]{36}$/)
  const place = pages.here(bob)
  const shown = await until('the ssh command', async () => pages.valueIn((await bob.read(place)).html, 'ssh'), { pause: 10 })
  await until('a login', () => lab.pasted(shown, world.bob.key.path, 'true').then(() => true), { pause: 10 })
  const login = performance.now() - begin
  await pages.untilStatus(bob, place, 'Running')
  await world.bob.destroy(place, name)
  return login
}

async function login(world, rounds) {
  const browser = await launch()
  try {
    const bob = await (await Visitor.open(browser, world.server)).enter('bob', lab.lab.password)
    await byForm(world, 'warm')
    const forms = [], clicks = []
    for (let number = 0; number < rounds; number += 1) {
      forms.push(await byForm(world, number))
      clicks.push(await byBrowser(world, bob, number))
    }
    const steps = Object.keys(forms[0].steps).map(name => [name, Math.round(at(forms.map(one => one.steps[name]), 0.5))])
    return { job: forms.map(one => one.job), form: forms.map(one => one.login), browser: clicks, steps: Object.fromEntries(steps) }
  } finally {
    await browser.close()
  }
}

/** Asks for both pages for some seconds; the milliseconds of each answer. A refused or late one counts as its limit. */
async function ask(world, seconds) {
  const times = { page: [], controller: [] }
  const end = performance.now() + seconds * 1000
  while (performance.now() < end) {
    for (const [name, get] of [['page', () => world.page(world.site, { timeout: 5000 })], ['controller', () => world.bob.get(world.victim.place, { timeout: 5000 })]]) {
      const begin = performance.now()
      const good = await get().then(answer => name === 'controller' ? answer.status === 200 : answer === 'the victim', () => false)
      times[name].push(good ? performance.now() - begin : 5000)
    }
    await sleep(20)
  }
  return times
}

/** Sockets to the attacker's name from addresses of their own, opened again as they are closed, until `stop()`. */
async function sockets(world, most) {
  const gateway = lab.lab.env.CORPUS_LAB_GATEWAY
  const bridge = (await run('ip', ['-br', 'address'])).split('\n').find(line => line.includes(`${gateway}/`)).split(/[\s@]/)[0]
  // They go with the lab's bridge.
  const callers = [101, 102, 103, 104].map(last => gateway.replace(/\d+$/, String(last)))
  for (const caller of callers) await run('ip', ['address', 'replace', `${caller}/32`, 'dev', bridge])
  const workerData = { host: lab.lab.nodes[NODE], name: world.evil, callers, most }
  const worker = new Worker(new URL('sockets.mjs', import.meta.url), { workerData })
  return () => worker.terminate()
}

const liar = readFileSync(fileURLToPath(new URL('guest/liar.pl', import.meta.url)), 'utf8')

/** The attacker's guest answers the controller with logs without end. */
async function lies(world) {
  const { attacker, mallory } = world
  await mallory.sends('/projects/borealis/environments', { guest: attacker.id })
  await pages.untilStatus(mallory, '/projects/borealis/dev', 'Nothing live yet', { limit: 120_000 })
  await attacker.root('sh -s', { input: `cat > /usr/local/lib/liar.pl <<'PERL'\n${liar}\nPERL
cat > /usr/local/bin/force <<'FORCE'
#!/bin/sh
case "$SSH_ORIGINAL_COMMAND" in *" serve") exec perl /usr/local/lib/liar.pl endless "$SSH_ORIGINAL_COMMAND" ;; esac
exec sh -c "$SSH_ORIGINAL_COMMAND"
FORCE
chmod 755 /usr/local/bin/force; echo 'ForceCommand /usr/local/bin/force' > /etc/ssh/sshd_config.d/hostile.conf; systemctl reload ssh` })
  return async () => {
    const { html } = await mallory.get('/projects/borealis/dev')
    const [, version] = /name="version" value="([^"]+)"/.exec(html)
    return mallory.sends('/projects/borealis/environments/dev/settings', { settings: 'more: lies', version })
  }
}

async function neighbour(world, seconds) {
  const lie = await lies(world)
  await lab.onNode(NODE, `ip route replace 198.51.100.0/24 via ${lab.lab.nodes.node2}`)
  await ask(world, 2)
  const without = await ask(world, seconds)
  const storm = world.attacker.attack('storm', { seconds: seconds + 3 }, { timeout: (seconds + 60) * 1000 }).catch(() => {})
  const stop = await sockets(world, 2000)
  await lie()
  await sleep(1500)
  const beside = await ask(world, seconds)
  await stop()
  await storm
  const told = times => Object.fromEntries(Object.entries(times).map(([name, all]) => [name, { p50: at(all, 0.5), p95: at(all, 0.95), answers: all.length, failed: all.filter(ms => ms >= 5000).length }]))
  return { without: told(without), beside: told(beside) }
}

const world = await World.begin({}, { guests: what === 'neighbour' })
try {
  const result = what === 'login' ? await login(world, amount) : await neighbour(world, amount)
  console.log(JSON.stringify(result))
} finally {
  await world.end()
}
