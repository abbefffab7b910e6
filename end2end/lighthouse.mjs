// How fast pages feel: when the largest part of a page is painted, by Lighthouse, and how long an interaction takes
// until it shows, by what the browser itself times (Event Timing, from which INP is made). Lighthouse would read the
// same from a trace with a picture of every frame, and on two slow processors the pictures take longer than the
// interaction. In a browser of its own, as a desktop without throttling: the server is what is measured, on this
// machine and with what else it does.
import os from 'node:os'
import lighthouse from 'lighthouse'
import { launch } from './browser.mjs'
import { note } from './measures.mjs'
import { freePort } from './server.mjs'

const CONFIG = {
  extends: 'lighthouse:default',
  settings: {
    formFactor: 'desktop',
    screenEmulation: { mobile: false, width: 1440, height: 900, deviceScaleFactor: 1, disabled: false },
    throttlingMethod: 'provided',
    disableStorageReset: true,
    // A page that is open asks again after five seconds, and what it exchanges then would count as painted late.
    maxWaitForLoad: 4_000,
  },
}
/** What Lighthouse's own measure of a machine is on one as people have: limits are for that, and wider on a slower one. */
const USUAL = 1500
/** Milliseconds that are soon enough on such a machine. */
const LIMITS = { paint: 500, interaction: 100 }
/** What took too long is tried again: something else may have had the machine. */
const TRIES = 3

/** The least of up to so many tries, which end with the first that is soon enough. */
async function least(limit, run) {
  let found = Infinity
  for (let left = TRIES; left > 0 && found >= limit; left--) found = Math.min(found, await run())
  return found
}

/** The middle one: a single look at a machine's speed is off by half of it. */
const median = numbers => numbers.toSorted((a, b) => a - b)[numbers.length >> 1]

/**
 * What a member's pages take, printed with the machine's load, and which of it is too long: lines, none when all is soon
 * enough.
 */
export async function measure(visitor, paths) {
  const port = await freePort()
  const browser = await launch([`--remote-debugging-port=${port}`])
  const found = []
  const speeds = []
  try {
    const cookies = await visitor.context.cookies()
    const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ')
    for (const path of paths) {
      const paint = await least(LIMITS.paint, async () => {
        const load = await painted(`${visitor.server.url}${path}`, cookie, port)
        speeds.push(load.speed)
        return load.paint
      })
      found.push({ path, paint })
    }
    // One who has been here before, as nearly always.
    const context = await browser.newContext({ baseURL: visitor.server.url, viewport: { width: 1440, height: 900 } })
    await context.addCookies(cookies)
    const page = await context.newPage()
    await interacts(page, paths[0])
    for (const one of found) one.interaction = await least(LIMITS.interaction, () => interacts(page, one.path))
  } finally {
    await browser.close()
  }
  const speed = median(speeds)
  const load = os.loadavg().map(one => one.toFixed(1)).join(', ')
  const named = found.map(one => ({ ...one, path: one.path.replace(/[0-9a-f-]{36}/, '…') }))
  note(`Pages as Lighthouse and the browser measure them (load of the machine ${load}, ${os.cpus().length} processors, index ${Math.round(speed)})`,
    named.map(({ path, paint, interaction }) => [path, `largest paint ${Math.round(paint)} ms, interaction ${Math.round(interaction)} ms`]))
  const limit = what => LIMITS[what] * Math.max(1, USUAL / speed)
  return named.flatMap(one => Object.keys(LIMITS).filter(what => one[what] >= limit(what))
    .map(what => `${one.path}: ${what} ${Math.round(one[what])} ms, not ${Math.round(limit(what))}`))
}

async function painted(url, cookie, port) {
  const config = { ...CONFIG, settings: { ...CONFIG.settings, onlyAudits: ['largest-contentful-paint'], extraHeaders: { Cookie: cookie } } }
  const { lhr } = await lighthouse(url, { port, logLevel: 'silent', output: 'json' }, config)
  const { numericValue, errorMessage } = lhr.audits['largest-contentful-paint']
  if (lhr.runtimeError || numericValue === undefined) throw new Error(`Lighthouse at ${url}: ${lhr.runtimeError?.message ?? errorMessage}`)
  const speed = lhr.environment.benchmarkIndex
  if (!(speed > 0)) throw new Error(`Lighthouse at ${url} does not say how fast this machine is: ${speed}`)
  return { paint: numericValue, speed }
}

/** Opens the search of the page, and types into it: the longest of these interactions. */
async function interacts(page, path) {
  await page.goto(path)
  await page.locator('html[data-alive]').waitFor()
  await page.evaluate(() => {
    window.timed = []
    new PerformanceObserver(list => window.timed.push(...list.getEntries().filter(one => one.interactionId > 0)))
      .observe({ type: 'event', durationThreshold: 16 })
  })
  await page.keyboard.press('Control+k')
  await page.locator('dialog.palette[open]').waitFor()
  await page.keyboard.type('www')
  await page.locator('.palette [role=option]').first().waitFor()
  // Told once it is shown; what is shown sooner than one can time is not told.
  await page.waitForFunction(() => window.timed.some(one => one.name === 'keydown'))
  await page.evaluate(() => new Promise(shown => requestAnimationFrame(() => setTimeout(shown, 100))))
  return page.evaluate(() => Math.max(...window.timed.map(one => one.duration)))
}
