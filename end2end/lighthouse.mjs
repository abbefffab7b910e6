// How fast pages feel, in Lighthouse's own numbers: when the largest part of a page is painted, and how long an
// interaction takes until it shows. In a browser of its own, as a desktop without throttling: the server is what
// is measured, on this machine and with what else it does.
import os from 'node:os'
import lighthouse, { startTimespan } from 'lighthouse'
import puppeteer from 'puppeteer-core'
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
  for (let left = TRIES; left > 0 && found >= limit(); left--) found = Math.min(found, await run())
  return found
}

/**
 * What a member's pages take, printed with the machine's load, and which of it is too long: lines, none when all is soon
 * enough.
 */
export async function measure(visitor, paths) {
  const port = await freePort()
  const browser = await launch([`--remote-debugging-port=${port}`])
  const found = []
  let speed = USUAL
  const limit = what => () => LIMITS[what] * Math.max(1, USUAL / speed)
  try {
    const cookies = await visitor.context.cookies()
    const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ')
    for (const path of paths) {
      const url = `${visitor.server.url}${path}`
      const paint = await least(limit('paint'), async () => {
        const load = await painted(url, cookie, port)
        speed = load.speed
        return load.paint
      })
      const interaction = await least(limit('interaction'), () => interacts(url, cookies, port))
      found.push({ path: path.replace(/[0-9a-f-]{36}/, '…'), paint, interaction })
    }
  } finally {
    await browser.close()
  }
  const load = os.loadavg().map(one => one.toFixed(1)).join(', ')
  note(`Pages as Lighthouse measures them (load of the machine ${load}, ${os.cpus().length} processors, index ${Math.round(speed)})`,
    found.map(({ path, paint, interaction }) => [path, `largest paint ${Math.round(paint)} ms, interaction ${Math.round(interaction)} ms`]))
  return found.flatMap(one => Object.keys(LIMITS).filter(what => one[what] >= limit(what)())
    .map(what => `${one.path}: ${what} ${Math.round(one[what])} ms, not ${Math.round(limit(what)())}`))
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

/** Opens the search of the page, and types into it. */
async function interacts(url, cookies, port) {
  const browser = await puppeteer.connect({ browserURL: `http://127.0.0.1:${port}`, defaultViewport: { width: 1440, height: 900 } })
  const page = await browser.newPage()
  try {
    await page.setCookie(...cookies.map(({ name, value }) => ({ name, value, url })))
    await page.goto(url)
    await page.waitForSelector('html[data-alive]')
    const span = await startTimespan(page, { config: { ...CONFIG, settings: { ...CONFIG.settings, onlyAudits: ['interaction-to-next-paint'] } }, flags: { logLevel: 'silent' } })
    await page.keyboard.down('Control')
    await page.keyboard.press('k')
    await page.keyboard.up('Control')
    await page.waitForSelector('dialog.palette[open]')
    await page.keyboard.type('www')
    await page.waitForFunction(() => document.querySelectorAll('.palette [role=option]').length > 0)
    const { lhr } = await span.endTimespan()
    const { numericValue, errorMessage } = lhr.audits['interaction-to-next-paint']
    if (numericValue === undefined) throw new Error(`Lighthouse measured no interaction at ${url}: ${errorMessage}`)
    return numericValue
  } finally {
    await page.close()
    await browser.disconnect()
  }
}
