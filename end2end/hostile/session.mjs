// A member at the forms without a browser: cookies and HTTP, so that what a form does not offer can be sent too.
import assert from 'node:assert/strict'
import http from 'node:http'
import * as pages from '../pages.mjs'
import { PATIENCE, until } from '../process.mjs'

const unescape = text => text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
const attribute = (tag, name) => {
  const found = new RegExp(`\\s${name}(?:="([^"]*)")?(?=[\\s>/])`).exec(tag)
  return found && unescape(found[1] ?? '')
}

/** What a browser would send of a page's form at `action` if nothing were changed. */
export function formIn(html, action) {
  const form = html.split(/<form\b/).slice(1).map(part => part.split('</form>')[0]).find(part => attribute(part.split('>')[0] + '>', 'action') === action)
  if (!form) return null
  const values = {}
  for (const [tag] of form.matchAll(/<input\b[^>]*>/g)) {
    const name = attribute(tag, 'name')
    if (!name || (/type="(checkbox|radio)"/.test(tag) && attribute(tag, 'checked') === null)) continue
    const value = attribute(tag, 'value') ?? 'on'
    values[name] = name in values ? [values[name], value].flat() : value
  }
  for (const [, head, body] of form.matchAll(/<select\b([^>]*)>([\s\S]*?)<\/select>/g)) {
    const options = [...body.matchAll(/<option\b[^>]*>[^<]*/g)].map(([option]) => ({ value: attribute(option.split('>')[0] + '>', 'value'), text: unescape(option.split('>')[1]).trim(), selected: attribute(option.split('>')[0] + '>', 'selected') !== null }))
    const chosen = options.find(option => option.selected) ?? options[0]
    values[attribute(`<x ${head}>`, 'name')] = chosen?.value ?? chosen?.text ?? ''
    values[`options of ${attribute(`<x ${head}>`, 'name')}`] = options
  }
  for (const [, head, body] of form.matchAll(/<textarea\b([^>]*)>([\s\S]*?)<\/textarea>/g)) values[attribute(`<x ${head}>`, 'name')] = unescape(body)
  return values
}

/** The choices of a field that `formIn` found. */
export const choices = (form, field) => form[`options of ${field}`] ?? []
const sendable = form => Object.entries(form).filter(([name, value]) => !name.startsWith('options of ') && value !== undefined)
  .flatMap(([name, value]) => [value].flat().map(one => [name, one]))

export class Session {
  /** `address`: where its requests come from, as a trusted proxy says. */
  constructor(url, { address } = {}) {
    this.url = url
    this.address = address
    this.cookies = new Map()
  }

  /** The answer as it is: `{ status, headers, html, place, ms }`. A `file` is sent as it is, in place of a form. */
  ask(path, { form, file, headers = {}, timeout = PATIENCE, method, agent = false } = {}) {
    const body = file ?? (form && new URLSearchParams(sendable(form)).toString())
    const begin = performance.now()
    const all = {
      origin: this.url,
      cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      ...(this.address && { 'x-forwarded-for': this.address }),
      ...(body !== undefined && { 'content-type': 'application/x-www-form-urlencoded', 'content-length': Buffer.byteLength(body) }),
      ...headers,
    }
    return new Promise((resolve, reject) => {
      const request = http.request(new URL(path, this.url), { method: method ?? (form ? 'POST' : 'GET'), headers: all, agent, timeout }, answer => {
        for (const line of answer.headers['set-cookie'] ?? []) {
          const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)
          if (value) this.cookies.set(name, value)
          else this.cookies.delete(name)
        }
        let html = ''
        answer.setEncoding('utf8')
        answer.on('data', piece => (html += piece))
        answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, html, place: answer.headers.location, ms: performance.now() - begin }))
      })
      request.on('timeout', () => request.destroy(new Error(`${path}: no answer in ${timeout} ms`)))
      request.on('error', reject)
      request.end(body)
    })
  }

  get = (path, options) => this.ask(path, options)
  /** The answer to a form; if it is shown again, at an address of its own, that page. */
  post = async (path, form = {}, options) => {
    const answer = await this.ask(path, { form, ...options })
    return pages.isKept(answer.place) ? this.get(answer.place) : answer
  }

  /** For `pages.untilStatus` and those that only read. */
  read = path => this.get(path)

  signIn(login, password, realm) {
    return this.post('/login', { login, password, ...(realm && { realm }) })
  }

  async enter(login, password, realm) {
    const answer = await this.signIn(login, password, realm)
    assert.equal(answer.status, 303, `${login} signs in: ${pages.errorsIn(answer.html)}`)
    this.login = login
    return this
  }

  /** Sends a form that must be taken; gives where it leads. */
  async sends(path, form) {
    const answer = await this.post(path, form)
    assert.equal(answer.status, 303, `${path} was refused with ${answer.status}: ${pages.errorsIn(answer.html)}`)
    return answer.place
  }

  /** Sets what an environment is deployed with; `page` is its path. */
  async saveSettings(page, settings) {
    const action = `${page.replace(/\/([^/]+)$/, '/environments/$1')}/settings`
    return this.sends(action, { ...formIn((await this.get(page)).html, action), settings })
  }

  /** The form for a guest, filled in as suggested but for `values`. `project` is a name. */
  async requestForm({ project, ...values }) {
    const form = await until('a node that takes guests', async () => formIn((await this.get('/guests/new')).html, '/guests'), { limit: 60_000, pause: 200 })
    const found = choices(form, 'project').find(option => option.text === project)
    return { ...form, ...(found && { project: found.value }), ...values }
  }

  /** Requests a guest; gives the path of its page. */
  async requestGuest(values) {
    return this.sends('/guests', await this.requestForm(values))
  }

  /** Destroys a guest, and waits until it is gone. */
  async destroy(path, name, limit = 60_000) {
    await pages.jobEnds(this, await this.sends(`${path}/delete`, { confirm: name }), 'Done', limit)
  }
}
