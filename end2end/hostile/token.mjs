// Who has a token, wants one, or says to be a program that waits for one: guessing, borrowing, keeping what is over,
// reading and changing by the JSON API what is others'.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { lab, pages, until, zone } from './world.mjs'

const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'
const { paths } = JSON.parse(readFileSync(fileURLToPath(new URL('../../docs/openapi.json', import.meta.url)), 'utf8'))

export async function attacks(attack, world) {
  const { alice, bob, carol, mallory, attacker, victim, server } = world

  /** A request as a program sends it, which has no cookies: `{ status, body, text, headers }`. */
  async function send(method, path, { token, json, form, from = '192.0.2.150', headers = {} } = {}) {
    const body = json ? JSON.stringify(json) : form && new URLSearchParams(form).toString()
    const type = json ? 'application/json' : 'application/x-www-form-urlencoded'
    const answer = await fetch(new URL(path, server.url), {
      method, body, redirect: 'manual',
      headers: { 'x-forwarded-for': from, ...(body !== undefined && { 'content-type': type }), ...(token && { authorization: `Bearer ${token}` }), ...headers },
    })
    const text = await answer.text()
    return { status: answer.status, text, body: /json/.test(answer.headers.get('content-type')) ? JSON.parse(text) : null, headers: answer.headers }
  }
  /** The same, when the member's own quota is not what is tried. */
  async function patient(...asked) {
    for (let time = 0; time < 20; time += 1) {
      const answer = await send(...asked)
      if (answer.status !== 429) return answer
      await sleep(1000 * Number(answer.headers.get('retry-after') ?? 1))
    }
    throw new Error(`${asked[1]} is never answered`)
  }
  const oauth = (path, form, options) => send('POST', `/oauth/${path}`, { form, ...options })

  /** A token that a member makes on the page: its text and its id. */
  async function made(session, name, scope) {
    const { html } = await session.post('/tokens', { name, scope, days: 1, _page: '/tokens' })
    const token = /data-copy="(corpus_[\w-]+)"/.exec(html)?.[1]
    assert.ok(token, `a token is made: ${pages.errorsIn(html)}`)
    const listed = await patient('GET', '/api/v1/tokens', { token })
    return { token, id: listed.body.items.find(one => one.name === name).id }
  }
  /** A program begins to wait: what it fetches its token with, and what a person types. */
  async function begins(name, from) {
    const { status, body } = await oauth('device', { client_id: name, scope: 'all' }, { from })
    return { status, code: body.device_code, typed: body.user_code }
  }
  const fetches = (code, from) => oauth('token', { grant_type: DEVICE, device_code: code }, { from })

  const [[job]] = await world.database.rows(`select id from jobs where guest_id = '${victim.id}' and kind = 'guest_create'`)
  const [[nameId]] = await world.database.rows(`select id from dns_names where name = '${world.site}'`)
  const [[keyId]] = await world.database.rows("select k.id from ssh_keys k join users u on u.id = k.user_id where u.login = 'bob' limit 1")
  const all = await made(mallory, 'all I may', 'all')
  const bobs = await made(bob, 'Jenkins of bob', 'all')

  await attack('reads and changes by the API what is another project\'s', async () => {
    const values = { project: 'atlas', login: 'bob', environment: 'prod', guest: victim.id, job, name: nameId, key: keyId, token: bobs.id, number: 1, robot: 'dev', operation: 'list_guests' }
    const taken = []
    for (const [path, methods] of Object.entries(paths).filter(([path]) => /\{(project|guest|job|name|key|token)\}/.test(path))) {
      const filled = path.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? randomUUID())
      for (const method of Object.keys(methods).filter(method => ['get', 'post', 'put', 'delete'].includes(method))) {
        // Without a body or a version: what one may not see is not there, whatever is sent.
        const answer = await patient(method.toUpperCase(), `/api/v1${filled}`, { token: all.token, ...(method !== 'get' && { json: {} }) })
        if (![403, 404].includes(answer.status) && !(method !== 'get' && [422, 428].includes(answer.status) && !answer.text.includes(victim.name))) taken.push(`${method} ${path}: ${answer.status} ${answer.text.slice(0, 100)}`)
        if (answer.text.includes(victim.name) || answer.text.includes(world.site)) taken.push(`${method} ${path} tells of the victim`)
      }
    }
    assert.deepEqual(taken, [])
    for (const list of ['guests', 'names', 'jobs', 'deployments', 'projects', 'nodes', 'search?q=victim']) {
      const { status, text } = await patient('GET', `/api/v1/${list}`, { token: all.token })
      assert.equal(status, 200, list)
      for (const secret of [victim.name, world.site, victim.id]) assert.ok(!text.includes(`"${secret}"`), `${list} tells of ${secret}`)
    }
  })

  await attack('has a token that only reads do more, or make one that does', async () => {
    const { token, id } = await made(mallory, 'only reads', 'read')
    for (const [method, path, json] of [
      ['POST', `/api/v1/guests/${attacker.id}/stop`, {}], ['DELETE', `/api/v1/guests/${attacker.id}`, undefined],
      ['POST', '/api/v1/tokens', { name: 'more', scope: 'all', days: 1 }], ['POST', '/api/v1/keys', { line: 'ssh-ed25519 AAAA x' }],
      ['DELETE', `/api/v1/tokens/${all.id}`, undefined],
    ]) {
      const answer = await patient(method, path, { token, json })
      assert.ok([403, 404].includes(answer.status), `${method} ${path}: ${answer.status} ${answer.text}`)
    }
    await mallory.sends(`/tokens/${id}/delete`)
    assert.equal((await send('GET', '/api/v1/me', { token, from: '192.0.2.151' })).status, 401)
  })

  await attack('is answered as somebody else for the key of their request', async () => {
    const asked = { json: { name: `once.${zone}` }, headers: { 'idempotency-key': randomUUID() } }
    const attach = token => patient('POST', `/api/v1/guests/${victim.id}/names`, { ...asked, token })
    const first = await attach(bobs.token)
    assert.equal(first.status, 202, first.text)
    assert.equal((await attach(bobs.token)).text, first.text, 'whose it is gets the same answer')
    const stolen = await attach(all.token)
    assert.equal(stolen.status, 404, stolen.text)
    assert.ok(!stolen.text.includes(first.body.job))
  })

  await attack('goes on to follow a job with a token that is over', async () => {
    const { token, id } = await made(mallory, 'follows', 'read')
    const [[own]] = await world.database.rows(`select id from jobs where guest_id = '${attacker.id}' and kind = 'guest_create'`)
    assert.equal((await send('GET', `/api/v1/jobs/${job}/events`, { token })).status, 404, 'that of the victim')
    assert.equal((await send('GET', `/api/v1/jobs/${own}/events`, { token })).status, 200)
    await mallory.sends(`/tokens/${id}/delete`)
    assert.equal((await send('GET', `/api/v1/jobs/${own}/events`, { token, from: '192.0.2.151' })).status, 401)
  })

  await attack('keeps by a token what a lost role gave', async () => {
    const twin = await world.enters('twin2', '192.0.2.67')
    await alice.sends('/projects/atlas/members', { login: 'twin2', role: 'developer' })
    const { token, id } = await made(twin, 'of a developer', 'all')
    const seen = () => patient('GET', `/api/v1/guests/${victim.id}`, { token })
    assert.equal((await seen()).status, 200)
    await alice.sends('/projects/atlas/members/twin2/delete')
    assert.equal((await seen()).status, 404)
    await twin.sends(`/tokens/${id}/delete`)
  })

  await attack('puts a token where it does not belong: address, cookie, a page', async () => {
    for (const asked of [
      { path: `/api/v1/me?access_token=${bobs.token}` }, { path: `/api/v1/me?token=${bobs.token}` },
      { path: '/api/v1/me', headers: { cookie: `corpus=${bobs.token}` } }, { path: '/api/v1/me', headers: { authorization: `Basic ${Buffer.from(`bob:${bobs.token}`).toString('base64')}` } },
    ]) {
      const { status } = await send('GET', asked.path, { headers: asked.headers, from: '192.0.2.152' })
      assert.ok([401, 422].includes(status), `${JSON.stringify(asked)}: ${status}`)
    }
    assert.equal((await send('GET', '/keys', { token: bobs.token })).status, 303, 'no page is shown for a token')
    assert.ok(!server.text().includes(bobs.token), 'and none of it is in the log')
  })

  await attack('guesses tokens, and keeps nobody else out', async () => {
    const statuses = []
    for (let time = 0; time < 30; time += 1) statuses.push((await send('GET', '/api/v1/me', { token: `corpus_${randomBytes(32).toString('base64url')}`, from: '192.0.2.153' })).status)
    assert.deepEqual([...new Set(statuses)], [401, 429])
    assert.equal((await patient('GET', '/api/v1/me', { token: bobs.token, from: '192.0.2.153' })).status, 200, 'a good one of the same address')
    assert.equal((await patient('GET', '/api/v1/me', { token: bobs.token, from: '192.0.2.154' })).status, 200)
  })

  await attack('tries passwords where programs do', async () => {
    const form = password => ({ grant_type: 'password', username: 'dave', password })
    for (let time = 0; time < 12; time += 1) await oauth('token', form(`wrong-${time}`), { from: '192.0.2.155' })
    assert.equal((await oauth('token', form(lab.lab.password), { from: '192.0.2.155' })).status, 429)
    assert.equal((await world.session('192.0.2.155').signIn('dave', lab.lab.password)).status, 429, 'the page counts the same')
    assert.equal((await world.session('192.0.2.156').signIn('dave', lab.lab.password)).status, 303, 'dave is not kept out')
    const browser = await oauth('token', form(lab.lab.password), { from: '192.0.2.157', headers: { origin: 'https://evil.example' } })
    assert.equal(browser.status, 403, 'not from a page of another site')
  })

  await attack('fetches with what a person types, or with another program\'s', async () => {
    const waits = await begins('desk', '192.0.2.158')
    for (const code of [waits.typed, '', 'x', randomBytes(32).toString('base64url'), `${waits.code}x`]) {
      const { status, body } = await fetches(code, '192.0.2.159')
      assert.equal(status, 400)
      assert.equal(body.error, 'expired_token', JSON.stringify(body))
    }
    await bob.sends(`/device-logins/${waits.typed}/refuse`, { _page: '/device' })
    assert.equal((await fetches(waits.code, '192.0.2.158')).body.error, 'access_denied')
    assert.equal((await mallory.post(`/device-logins/${waits.typed}/approve`, { scope: 'all', days: 1, _page: '/device' })).status, 404, 'decided is decided')
  })

  await attack('lets a program in for somebody whose browser is on another page', async () => {
    const waits = await begins('innocent', '192.0.2.158')
    const approve = `/device-logins/${waits.typed}/approve`
    const form = { scope: 'all', days: 1, _page: '/device' }
    assert.equal((await bob.post(approve, form, { headers: { origin: 'https://evil.example' } })).status, 403)
    assert.equal((await bob.get(`/device?code=${waits.typed}`)).status, 200)
    assert.equal((await fetches(waits.code, '192.0.2.158')).body.error, 'authorization_pending', 'to look lets nobody in')
    assert.match((await bob.get(`/device?code=${waits.typed}`)).headers['content-security-policy'], /frame-ancestors 'none'/)
  })

  await attack('was let in, and fetches after who let them in is shut out', async () => {
    const twin = await world.enters('twin2', '192.0.2.67')
    const waits = await begins('late', '192.0.2.158')
    await twin.sends(`/device-logins/${waits.typed}/approve`, { scope: 'all', days: 1, _page: '/device' })
    await world.database.rows("update users set disabled_at = now() where login = 'twin2'")
    const { body } = await fetches(waits.code, '192.0.2.158')
    await world.database.rows("update users set disabled_at = null where login = 'twin2'")
    assert.equal(body.error, 'access_denied')
    assert.equal((await fetches(waits.code, '192.0.2.158')).body.error, 'expired_token')
  })

  await attack('has so many programs wait that nobody else\'s can', async () => {
    const statuses = await Promise.all(Array.from({ length: 100 }, (_, number) => begins(`bot ${number}`, '192.0.2.160').then(({ status }) => status)))
    assert.deepEqual([...new Set(statuses)].sort(), [200, 429])
    assert.ok(statuses.filter(status => status === 200).length <= 20)
    assert.equal((await begins('somebody', '192.0.2.161')).status, 200)
  })

  await attack('ends tokens that are others\'', async () => {
    assert.equal((await mallory.post(`/tokens/${bobs.id}/delete`)).status, 404)
    for (const text of [bobs.id, bobs.token.slice(0, -1), `${bobs.token}x`]) await oauth('revoke', { token: text }, { from: '192.0.2.162' })
    assert.equal((await patient('GET', '/api/v1/me', { token: bobs.token })).status, 200)
    assert.equal((await patient('GET', '/api/v1/me', { token: all.token })).body.login, 'twin1')
    const carols = await made(carol, 'her own', 'read')
    await oauth('revoke', { token: carols.token }, { from: '192.0.2.163' })
    await until('the token to be over', async () => (await send('GET', '/api/v1/me', { token: carols.token, from: '192.0.2.163' })).status === 401)
  })
}
