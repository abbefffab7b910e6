// Members who request and destroy guests by the servers' forms, whichever server is alive: what
// a browser sends, and again with the same form when the server died before it answered.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import * as pages from './pages.mjs'
import { until } from './process.mjs'

/** The server is gone and gave no answer: whether it did what was asked is not known. */
class Lost extends Error {}

export class Member {
  /** `alive()` gives the URLs of the servers that may be asked; `cookie` is the signed-in browser's; a server may be `unready` (503) for a while. */
  constructor(cookie, alive, { unready = false } = {}) {
    this.cookie = cookie
    this.alive = alive
    this.unready = unready
    this.turn = 0
    /** Answers that no server that lives may give. */
    this.faults = []
    this.repeated = 0
    this.answers = 0
  }

  async once(path, form) {
    const urls = this.alive()
    if (urls.length === 0) throw new Lost('no server is alive')
    const url = urls[this.turn++ % urls.length]
    const body = form && new URLSearchParams(form)
    const headers = { cookie: this.cookie, origin: url }
    const answer = await fetch(url + path, { method: form ? 'POST' : 'GET', body, headers, redirect: 'manual', signal: AbortSignal.timeout(30_000) })
      .then(async answer => ({ status: answer.status, place: answer.headers.get('location'), html: await answer.text() }))
      .catch(error => { throw new Lost(`${url}${path}`, { cause: error }) })
    if (answer.status === 503 && this.unready) throw new Lost(`${url}${path} is not ready`)
    this.answers += 1
    if (answer.status >= 500) this.faults.push(`${answer.status} from ${url}${path}`)
    // A form that is refused is shown again at an address of its own.
    return pages.isKept(answer.place) ? this.once(answer.place) : answer
  }

  /** Asks until a server answers. */
  async ask(path, form) {
    return until(`an answer of any server to ${path}`, async () => {
      try {
        return await this.once(path, form)
      } catch (error) {
        this.repeated += 1
        throw error
      }
    }, { limit: 60_000, pause: 100 })
  }

  async request(fields) {
    const form = { ...fields, _id: randomUUID() }
    const answer = await until(`an answer to the request of ${fields.name}`, async () => {
      const said = await this.ask('/guests', form)
      if (said.status !== 409 || !said.html.includes('The same request is being worked on')) return said
      // The server that was asked before is dead; what it had claimed is taken over after two minutes.
      this.repeated += 1
      return false
    }, { limit: 180_000, pause: 100 })
    if (answer.status !== 303) throw new Error(`${fields.name} was refused with ${answer.status}: ${pages.errorsIn(answer.html)}`)
    return answer.place
  }

  async untilStatus(place, words, limit = 180_000) {
    let seen
    return until(`${words} at ${place}`, async () => {
      const answer = await this.ask(place)
      seen = answer.status === 404 ? 'gone' : pages.statusIn(answer.html)
      return words.includes(seen) && seen
    }, { limit, pause: 150 }).catch(error => { throw new Error(`${error.message}; last seen: ${seen}`) })
  }

  /** Destroys a guest; asks again unless it is seen that a lost request was taken. */
  async destroy(place, name) {
    for (;;) {
      const answer = await this.once(`${place}/delete`, { confirm: name }).catch(() => null)
      if (answer?.status === 303 || answer?.status === 404) break
      this.repeated += 1
      const seen = await this.ask(place)
      if (seen.status === 404 || pages.statusIn(seen.html) === 'Destroying') break
      if (answer) throw new Error(`${name} is not destroyed: ${answer.status}: ${pages.errorsIn(answer.html)}`)
      await sleep(100)
    }
    await this.untilStatus(place, ['gone'])
  }
}

/**
 * Works until `end()`: guest after guest. The last one stays. Returns `{ made, failed, kept }`.
 */
export async function work(member, index, { fields, nodes, zone, end }) {
  const done = { made: 0, destroyed: 0, failed: [], kept: null }
  for (let number = 0; ; number += 1) {
    const name = `g${index}-${number}.${zone}`
    const names = number % 3 === 0 ? `s${index}-${number}.${zone}` : ''
    const place = await member.request({ ...fields, name, names, node: nodes[(index + number) % nodes.length] })
    const seen = await member.untilStatus(place, ['Running', 'Failed', 'Not created'])
    if (seen !== 'Running') {
      done.failed.push(`${name}: ${seen}`)
      if (end()) return done
      continue
    }
    done.made += 1
    if (end()) {
      done.kept = { name, place }
      return done
    }
    await member.destroy(place, name)
    done.destroyed += 1
  }
}
