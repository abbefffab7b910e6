// What a person does on the pages, by clicks and forms only: the same with and without
// JavaScript. Nothing here waits a fixed time.
import assert from 'node:assert/strict'
import { lab } from './lab.mjs'
import { PATIENCE, until } from './process.mjs'

const text = html => html.replaceAll('&amp;', '&').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&#39;', "'")

/** The word of a page's status, beside its heading. */
export const statusIn = html => /class="head"[\s\S]*?class="status[^"]*"[^>]*>([^<]*)</.exec(html)?.[1].trim()

/** A value that a page shows to be copied. */
export const valueIn = (html, what) => {
  const found = new RegExp(`<code[^>]*data-value="${what}"[^>]*>([^<]*)<`).exec(html)
  return found && text(found[1]).trim()
}

/** The path of the page that is open. */
export const here = visitor => new URL(visitor.page.url()).pathname

/**
 * Clicks what sends a form or leads to another page, and waits until the browser is there: on a
 * busy machine a click returns before.
 */
export async function sends(visitor, target) {
  const there = visitor.page.waitForNavigation({ waitUntil: 'domcontentloaded' })
  await Promise.all([there, target.click()])
}

export const heading = (visitor, name) => visitor.page.getByRole('heading', { level: 1, name, exact: false }).first().waitFor()
/** Presses a button, and waits for the page that this leads to. */
export const press = (visitor, name) => sends(visitor, visitor.page.getByRole('button', { name, exact: true }))
const fill = (visitor, label, value) => visitor.page.getByLabel(label, { exact: true }).fill(value)

/** Whether an address shows a form again: where one that is refused leads. */
export const isKept = place => /[?&]kept=/.test(place ?? '')

/** Signs in at the login page that is open, and waits for what comes then. */
export async function signInHere(visitor, login, password) {
  await fill(visitor, 'Login name', login)
  await fill(visitor, 'Password', password)
  await press(visitor, 'Sign in')
}

/** What a refused form says: beside a field, or in the summary at the top. */
export const errorAt = (visitor, field) => visitor.page.locator(`#f-${field}-error`)
export const summary = visitor => visitor.page.locator('#error-summary')

/** Sets up the environment that its project's page offers for a free guest. */
export const setUp = visitor => sends(visitor, visitor.page.getByRole('button', { name: /^Set up / }))

/** Waits until the server shows a page with one of `words`; fails at once when it shows one of `never`. */
export async function untilStatus(visitor, path, words, { never = ['Failed'], limit = 60_000, pause } = {}) {
  let seen
  const reached = await until(`${words} at ${path}`, async () => {
    const { html } = await visitor.read(path)
    seen = statusIn(html)
    return [...[words].flat(), ...never].includes(seen) && { html, seen }
  }, { limit, pause }).catch(error => { throw new Error(`${error.message}; last seen: ${seen}`, { cause: error }) })
  if (never.includes(reached.seen)) throw new Error(`${path} is ${reached.seen}: ${reasonIn(reached.html)}`)
  return reached.html
}

/** What a part of a page says, without its tags. */
export const plain = html => html.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ').trim()

/** What a refused form says at its top. */
export const errorsIn = html => plain(/id="error-summary"[\s\S]*?<\/div>/.exec(html)?.[0] ?? html.slice(html.indexOf('<main')).slice(0, 400))

/** Why something failed, as its page says. */
export const reasonIn = html => [.../class="banner[^"]*"[\s\S]*?<\/div>\s*<\/div>/g[Symbol.matchAll](html)]
  .map(match => plain(match[0])).join(' | ')

/** Link, step 1: has the host key read; the page then shows the fingerprint. */
export async function probe(visitor, { address, port, user, network, gateway } = {}) {
  await visitor.page.goto('/nodes/link')
  await fill(visitor, 'Host name or address', address)
  if (port !== undefined) await fill(visitor, 'SSH port', String(port))
  if (user !== undefined) await fill(visitor, 'User', user)
  if (network !== undefined) {
    await visitor.page.getByText("Guests' network", { exact: true }).click()
    await fill(visitor, 'Gateway and prefix', network)
  }
  if (gateway !== undefined) {
    await visitor.page.getByText('Gateway', { exact: true }).click()
    await fill(visitor, "Gateway's host name or address", gateway.address)
    await fill(visitor, 'User on the gateway', gateway.user ?? 'root')
  }
  await press(visitor, 'Read the host key')
}

/** Link, the step between for a host behind a gateway: confirms that one. */
export async function confirmGateway(visitor, password) {
  await fill(visitor, 'One-time password of the gateway (optional)', password)
  await press(visitor, 'This is the gateway: read the host key')
}

/** Link, step 2: confirms the host, optionally with the one-time password. */
export async function confirmHost(visitor, password) {
  if (password !== undefined) await fill(visitor, 'One-time password (optional)', password)
  await press(visitor, 'This is the host: link it')
}

/** Both steps for a node of the lab; returns the path of its page. */
export async function link(visitor, node, options = {}) {
  await probe(visitor, { address: lab.nodes[node], ...options })
  await visitor.page.locator('code[data-value=fingerprint]').waitFor()
  await confirmHost(visitor, options.password ?? lab.nodePassword)
  await heading(visitor, lab.nodes[node])
  const path = here(visitor)
  assert.match(path, /^\/nodes\/[0-9a-f-]{36}$/)
  return path
}

/** Links and initializes a node, and waits until it is ready. */
export async function readyNode(visitor, node, options) {
  const path = await link(visitor, node, options)
  await untilStatus(visitor, path, 'Linked')
  await initialize(visitor, path)
  await untilReady(visitor, path)
  return path
}

/** Waits until a node takes guests; if it does not, fails with what its last job came to. */
export async function untilReady(visitor, path) {
  try {
    await untilStatus(visitor, path, 'Ready', { limit: 180_000, pause: 100 })
  } catch (error) {
    const job = /\/jobs\/[0-9a-f-]{36}/.exec((await visitor.read(path)).html)?.[0]
    const { html } = job ? await visitor.read(job) : { html: '' }
    throw new Error(`${error.message}; ${job}: ${plain(html.slice(html.indexOf('<main'))).slice(0, 3000)}`, { cause: error })
  }
}

export async function initialize(visitor, path) {
  await visitor.page.goto(path)
  await press(visitor, 'Initialize')
}

export async function unlink(visitor, path, address, { force = false } = {}) {
  await visitor.page.goto(path)
  await sends(visitor, visitor.page.getByRole('link', { name: 'Unlink node', exact: true }))
  await fill(visitor, `Type ${address} to confirm`, address)
  if (force) await visitor.page.getByLabel('Forget it without reaching it').check()
  await press(visitor, 'Unlink this node')
  // Where the job is followed; a refused unlink stays at the question.
  const job = here(visitor)
  assert.match(job, /^\/jobs\/[0-9a-f-]{36}$/)
  return job
}

/** Waits for the end of a job, and fails unless it is the one wanted. */
export const jobEnds = (visitor, path, state = 'Done', limit = 60_000) =>
  untilStatus(visitor, path, state, { never: ['Done', 'Undone', 'Cancelled', 'Stuck', 'Abandoned'].filter(word => word !== state), limit })

export async function addKey(visitor, line) {
  await visitor.page.goto('/keys')
  await fill(visitor, 'Public key', line)
  await press(visitor, 'Add the key')
}

export async function removeKey(visitor, fingerprint) {
  await visitor.page.goto('/keys')
  await confirmIn(visitor, visitor.page.locator('tr, li').filter({ hasText: fingerprint }).first())
}

/** Opens the question inside `place` and answers yes. */
export async function confirmIn(visitor, place) {
  await place.locator('summary').click()
  await sends(visitor, place.getByRole('button', { name: /^Yes, / }))
}

const CHOICES = { project: 'Project', environment: 'Environment', size: 'Size', node: 'Node', image: 'Image', driver: 'Driver', backing: 'Backing', mode: 'Mode', profile: 'Profile' }

/**
 * Fills in the form for a guest; `values` by field name; what is absent stays as suggested. There is
 * a form only while some node takes guests, which one that was just healed does after a few answers.
 */
export async function fillRequest(visitor, values) {
  const { page } = visitor
  await until('a node that takes guests', async () => {
    await page.goto('/guests/new')
    return await page.locator('[name=name]').count()
  }, { limit: 60_000, pause: 500 })
  for (const [field, value] of Object.entries(values)) {
    const control = page.locator(`[name=${field}]`)
    const details = page.locator('main form details').filter({ has: control }).first()
    if (await details.count() && !await details.evaluate(element => element.open)) await details.locator('summary').first().click()
    if (!CHOICES[field]) await control.fill(value)
    else await control.selectOption(field === 'project' ? { label: value } : value)
  }
}

/** Requests a guest; returns the path of its page. */
export async function requestGuest(visitor, values) {
  await fillRequest(visitor, values)
  await press(visitor, 'Request the guest')
  await heading(visitor, values.name)
  const path = here(visitor)
  assert.match(path, /^\/guests\/[0-9a-f-]{36}$/)
  return path
}

/** Start, Stop or Restart. Of prod what interrupts it is asked first, and nothing else is. */
export async function power(visitor, path, word) {
  const { page } = visitor
  await page.goto(path)
  const question = page.locator('.head summary', { hasText: word })
  const interrupts = word !== 'Start' && await page.locator('.head .tag.prod').count() > 0
  assert.equal(await question.count(), interrupts ? 1 : 0, `${word} ${interrupts ? 'asks' : 'asks nothing'}`)
  if (!interrupts) return press(visitor, word)
  await question.click()
  return press(visitor, `Yes, ${word.toLowerCase()}`)
}

/** Reveals the root password and returns it. */
export async function reveal(visitor, path) {
  await visitor.page.goto(path)
  await press(visitor, 'Reveal, recorded in the audit log')
  return (await visitor.page.locator('code[data-value=password]').textContent()).trim()
}

export async function attach(visitor, path, name) {
  await visitor.page.goto(path)
  await fill(visitor, 'DNS name', name)
  await press(visitor, 'Attach')
}

/** Waits until the guest's page shows a name in a state; `null` waits until it shows it no more. */
export const nameIs = (visitor, path, name, state, { limit = PATIENCE, pause } = {}) =>
  until(`${name} ${state ?? 'gone'} at ${path}`, async () => {
    const { html } = await visitor.read(path)
    const row = html.split(/<tr\b|<li\b/).find(part => part.includes(`>${name}<`))
    return state ? row && new RegExp(`class="status[^"]*"[^>]*>${state}<`).test(row) : !row
  }, { limit, pause })

export async function detach(visitor, path, name) {
  await visitor.page.goto(path)
  await confirmIn(visitor, visitor.page.locator('tr, li').filter({ hasText: name }).first())
}

export async function createZone(visitor, zone) {
  await visitor.page.goto('/dns')
  await fill(visitor, 'Zone name', zone)
  await visitor.page.getByLabel('All projects', { exact: true }).check()
  await press(visitor, 'Create the zone')
}

export async function removeZone(visitor, zone) {
  await visitor.page.goto('/dns')
  await confirmIn(visitor, visitor.page.locator('tr, li').filter({ has: visitor.page.locator(`summary[aria-label="Remove zone ${zone}"]`) }).first())
}

/** Destroys a guest; returns the path of the job. */
export async function destroy(visitor, path, name) {
  await visitor.page.goto(path)
  await sends(visitor, visitor.page.getByRole('link', { name: 'Destroy guest', exact: true }))
  await fill(visitor, `Type ${name} to confirm`, name)
  await press(visitor, 'Destroy this guest')
  await visitor.page.waitForURL(/\/jobs\/[0-9a-f-]{36}$/)
  return here(visitor)
}
