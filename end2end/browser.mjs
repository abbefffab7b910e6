// Chromium, and the rule of all tests in it: an error on the console, a script's exception, a
// failed subresource or an answer of 5xx fails the test, wherever it happens.
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { chromium } from 'playwright-core'
import { preload } from './preload.mjs'
import { PATIENCE } from './process.mjs'
import { out } from './server.mjs'

// The dead proxy keeps the browser itself off the network; the lab is reached directly.
const FLAGS = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--disable-background-networking',
  '--disable-component-update', '--no-first-run', '--proxy-server=http://127.0.0.1:9',
  '--proxy-bypass-list=127.0.0.1;localhost;10.0.0.0/8;*.corpus.test']

// Addresses that come and go are kept from the browser.
export const launch = (more = []) => chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: [...FLAGS, ...more],
  env: { ...process.env, LD_PRELOAD: preload('still-network') },
})

// Whoever left for an empty page asks for nothing any more; what the one before asked for last ends as nobody's.
const isLeft = page => page.url() === 'about:blank'
const withoutQuery = url => url.split('?')[0]

export class Visitor {
  constructor(server, context) {
    this.server = server
    this.context = context
    this.faults = []
    /** Console errors: judged at the next check, when all answers they may repeat are known. */
    this.messages = []
    /** Pages and forms that were answered by a 4xx. */
    this.refused = new Set()
    /** Statuses of 5xx that the test itself provoked. */
    this.expected = new Set()
    /** What else it provoked: messages of the browser. */
    this.tolerated = null
    context.on('page', page => this.watch(page))
  }

  /** A browser of its own for one person: own cookies, own faults. */
  static async open(browser, server, options = {}) {
    const context = await browser.newContext({
      baseURL: server.url,
      viewport: { width: 1440, height: 900 },
      // What turns while something waits would be drawn sixty times a second, by the processor.
      reducedMotion: 'reduce',
      ...options,
    })
    context.setDefaultTimeout(PATIENCE)
    const visitor = new Visitor(server, context)
    visitor.scripts = options.javaScriptEnabled !== false
    visitor.page = await context.newPage()
    return visitor
  }

  watch(page) {
    page.on('console', message => {
      const text = message.text()
      const { url } = message.location()
      if (isLeft(page)) return
      const provoked = [...this.expected].some(status => text.includes(`status of ${status}`))
      if (message.type() === 'error' && !provoked && !this.tolerated?.test(`${text} (${url})`)) {
        this.messages.push({ text, at: page.url(), url })
      }
    })
    page.on('pageerror', error => this.faults.push(`exception at ${page.url()}: ${error.stack ?? error}`))
    page.on('response', response => {
      const status = response.status()
      const request = response.request()
      // A page, or what a page fetched in its place: a refused form, or where it is shown again, a question about
      // what is typed.
      const answers = request.isNavigationRequest() || [request, request.redirectedFrom()].some(one => one?.method() === 'POST')
      if (status >= 400 && status < 500 && answers) this.refused.add(withoutQuery(response.url()))
      if (status >= 500 && !this.expected.has(status)) this.faults.push(`${status} from ${response.url()}`)
    })
    page.on('requestfailed', request => {
      const why = request.failure()?.errorText
      // A page that is left ends its own requests; with JavaScript off a script is named and not fetched.
      const wanted = isLeft(page) || why === 'net::ERR_ABORTED' || this.tolerated?.test(why) || (!this.scripts && request.resourceType() === 'script')
      if (!wanted) this.faults.push(`${request.method()} ${request.url()}: ${why}`)
    })
  }

  /** Fails if anything of the rule was broken since the last check. */
  check() {
    const repeats = ({ text, url }) => /status of 4\d\d/.test(text) && this.refused.has(withoutQuery(url))
    const messages = this.messages.splice(0).filter(message => !repeats(message))
    const faults = [...this.faults.splice(0), ...messages.map(({ text, at, url }) => `console at ${at}: ${text} (${url})`)]
    assert.deepEqual(faults, [], 'the browser reported faults')
  }

  async signIn(login, password, realm) {
    const { page } = this
    await page.goto('/login')
    await page.getByLabel('Login name').fill(login)
    await page.getByLabel('Password', { exact: true }).fill(password)
    if (realm) await page.getByLabel('Sign in with').selectOption(realm)
    await page.getByRole('button', { name: 'Sign in' }).click()
  }

  /** Signs in, and is on the overview afterwards. */
  async enter(login, password) {
    await this.signIn(login, password)
    await this.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    return this
  }

  async screenshot(name, options = {}) {
    mkdirSync(out, { recursive: true })
    await this.page.screenshot({ path: path.join(out, `${name}.png`), fullPage: true, ...options })
  }

  /** A page as the server renders it now, without leaving the open one. */
  async read(pathname) {
    const answer = await this.context.request.get(pathname)
    const status = answer.status()
    if (status >= 500 && !this.expected.has(status)) this.faults.push(`${status} from ${pathname}`)
    return { status, html: await answer.text() }
  }

  /** Until the page's script runs; what the browser has against the page says why it doesn't. */
  async alive(page = this.page) {
    try {
      await page.locator('html[data-alive]').waitFor()
    } catch (error) {
      const found = [...this.faults, ...this.messages.map(message => message.text)]
      const { state, fetched } = await page.evaluate(() => ({
        state: document.readyState,
        fetched: performance.getEntriesByType('resource').filter(one => one.name.includes('/pkg/'))
          .map(one => `${one.name.split('/').pop()} ${one.responseStatus} after ${Math.round(one.responseEnd)} ms`),
      }))
      error.message += `\nat ${page.url()}, ${state}, with ${fetched.join(', ') || 'no script'}: ${found.join('; ') || 'no fault'}`
      throw error
    }
  }

  close() {
    return this.context.close()
  }
}
