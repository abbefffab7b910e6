// Who got hold of a robot's token or deploy key, and who would like a robot that may more than they do: at pages, at
// other environments and projects, for a shell, for more tokens, keys, robots and roles, and after it is over.
import assert from 'node:assert/strict'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Repository } from '../git.mjs'
import { lab, pages, until, zone } from './world.mjs'

export async function attacks(attack, world) {
  const { alice, bob, carol, mallory, victim, attacker, server } = world
  const robots = '/projects/atlas/robots'

  /** A request as a program sends it, when the robot's own quota is not what is tried. */
  async function send(method, path, { token, json, headers = {} } = {}) {
    for (let time = 0; time < 20; time += 1) {
      const answer = await fetch(new URL(path, server.url), {
        method, body: json && JSON.stringify(json), redirect: 'manual',
        headers: { 'x-forwarded-for': '192.0.2.160', ...(json && { 'content-type': 'application/json' }), ...(token && { authorization: `Bearer ${token}` }), ...headers },
      })
      const text = await answer.text()
      if (answer.status !== 429) return { status: answer.status, text, body: /json/.test(answer.headers.get('content-type')) ? JSON.parse(text) : null }
      await sleep(1000 * Number(answer.headers.get('retry-after') ?? 1))
    }
    throw new Error(`${path} is never answered`)
  }
  const api = (method, path, options) => send(method, `/api/v1${path}`, options)

  /** A robot of atlas that bob makes by the forms, with a token and a deploy key. */
  async function made(name, role, environments, scope = 'operate') {
    await bob.sends(robots, { robot: name, role, environments })
    const page = `${robots}/${name}`
    const { html } = await bob.post(`${page}/tokens`, { name: 'stolen', scope, days: 1, _page: page })
    const token = /data-copy="(corpus_[\w-]+)"/.exec(html)?.[1]
    assert.ok(token, `a token is made: ${pages.errorsIn(html)}`)
    const key = await lab.makeKey(path.join(server.folder, `robot-${name}`))
    await bob.sends(`${page}/keys`, { line: key.line, scope: 'deploy', _page: page })
    return { name, page, token, key }
  }

  const dev = await made('dev', 'maintainer', 'dev')
  const git = `ssh://git@127.0.0.1:${server.gitPort}`
  const repository = await Repository.make(path.join(server.folder, 'robot-site'), dev.key.path, { example: 'static-site' })

  await attack('asks for pages, forms and a session with a robot\'s token', async () => {
    for (const page of ['/', '/projects/atlas', robots, '/keys', '/tokens']) {
      assert.equal((await send('GET', page, { token: dev.token })).status, 303, `${page} leads to the login`)
    }
    assert.notEqual((await world.session('192.0.2.161').signIn('atlas/dev', dev.token)).status, 303)
    const form = new URLSearchParams({ grant_type: 'password', username: 'atlas/dev', password: dev.token })
    const answer = await fetch(new URL('/oauth/token', server.url), { method: 'POST', body: form, headers: { 'x-forwarded-for': '192.0.2.161' } })
    assert.equal(answer.status, 400)
    assert.ok(!server.text().includes(dev.token), 'and none of it is in the log')
  })

  await attack('reaches the guest of another environment with a robot of dev', async () => {
    for (const [method, path, json] of [
      ['GET', `/guests/${victim.id}`], ['GET', `/guests/${victim.id}/limits`], ['POST', `/guests/${victim.id}/stop`, {}],
      ['DELETE', `/guests/${victim.id}`], ['POST', `/guests/${victim.id}/names`, { name: `robot.${victim.name}` }],
    ]) {
      const { status, text } = await api(method, path, { token: dev.token, json })
      assert.equal(status, 404, `${method} ${path}: ${text}`)
      assert.ok(!text.includes(victim.name))
    }
    for (const [method, path, json] of [['POST', '/projects/atlas/environments/prod/deployments', {}], ['GET', '/projects/atlas/environments/prod']]) {
      assert.equal((await api(method, path, { token: dev.token, json })).status, 403, path)
    }
    for (const path of ['/guests', '/guests?environment=prod', '/jobs', '/deployments', '/projects/atlas']) {
      const { status, text } = await api('GET', path, { token: dev.token })
      assert.equal(status, 200, path)
      for (const secret of [victim.name, victim.id]) assert.ok(!text.includes(secret), `${path} tells of ${secret}`)
    }
  })

  await attack('reaches another project with it', async () => {
    for (const path of ['/projects/borealis', `/guests/${attacker.id}`, '/projects/borealis/environments/dev']) {
      assert.equal((await api('GET', path, { token: dev.token })).status, 404, path)
    }
    for (const path of [`/projects/atlas/robots`, `${robots}/dev`]) {
      const stolen = await mallory.get(path)
      assert.equal(stolen.status, 404, path)
    }
    const forged = await mallory.post(`${robots}/dev/tokens`, { name: 'mine', scope: 'operate', days: 1, _page: `${robots}/dev` })
    assert.equal(forged.status, 404)
  })

  await attack('makes tokens, keys, robots, members and projects with it', async () => {
    const { line } = await lab.makeKey(path.join(server.folder, 'robot-more'))
    for (const [method, path, json] of [
      ['POST', '/tokens', { name: 'more', scope: 'read', days: 1 }], ['GET', '/tokens'], ['POST', '/keys', { line }], ['GET', '/keys'],
      ['POST', '/projects/atlas/robots', { robot: 'more', role: 'maintainer', environments: ['prod'] }], ['GET', '/projects/atlas/robots'],
      ['POST', '/projects/atlas/robots/dev/tokens', { name: 'more', scope: 'operate', days: 1 }],
      ['POST', '/projects/atlas/robots/dev/keys', { line, scope: 'deploy' }], ['DELETE', '/projects/atlas/robots/dev'],
      ['PUT', '/projects/atlas/members/twin1', { role: 'maintainer' }], ['DELETE', '/projects/atlas'], ['POST', '/projects', { name: 'robots' }],
      ['POST', `/guests/${victim.id}/password/reveal`, {}], ['GET', '/audit'], ['GET', '/search?q=victim'], ['GET', '/overview'],
    ]) {
      const { status, text } = await api(method, path, { token: dev.token, json })
      assert.equal(status, 403, `${method} ${path}: ${status} ${text}`)
    }
    const asked = { name: `robots.${zone}`, project: 'atlas', environment: 'dev', size: 'xxsmall', password: 'a password of my own 1' }
    const { status, text } = await api('POST', '/guests', { token: dev.token, json: asked })
    assert.ok(status === 422 && text.includes('not for robots'), `no guest with a password that it knows: ${status} ${text}`)
  })

  await attack('has a role that its maker has not', async () => {
    const { html, status } = await carol.post(robots, { robot: 'carols', role: 'maintainer', environments: 'prod', _page: robots })
    assert.equal(status, 403, pages.errorsIn(html))
    assert.equal((await world.database.rows("select name from robots where name = 'carols'")).length, 0)
  })

  await attack('pushes where the robot is not for, and gets a shell with its key', async () => {
    const refused = await repository.push(`${git}/atlas/prod`)
    assert.match(refused.text, /this robot is not for prod/, refused.text)
    assert.match((await repository.push(`${git}/borealis/dev`)).text, /no such project or environment, or not yours/)
    for (const guest of [victim, attacker]) {
      await assert.rejects(lab.pasted(guest.shown, dev.key.path, 'id'), /Permission denied/, `${guest.name} lets no robot in`)
    }
    const { line } = dev.key
    const claimed = await mallory.post('/keys', { line, _page: '/keys' })
    assert.ok(!claimed.html.includes('atlas/dev'), 'whose key it is is not told')
  })

  await attack('goes on with what is over', async () => {
    const other = await made('over', 'maintainer', 'prod', 'deploy')
    const me = () => api('GET', '/me', { token: other.token })
    assert.equal((await me()).body.login, 'atlas/over')
    assert.equal((await api('GET', `/guests/${victim.id}`, { token: other.token })).status, 200)
    assert.equal((await api('POST', `/guests/${victim.id}/stop`, { token: other.token, json: {} })).status, 403, 'a token to deploy stops nothing')
    const html = (await bob.get(other.page)).html
    const version = /name="version" value="(\w+)"/.exec(html)[1]
    await bob.sends(other.page, { role: 'maintainer', environments: 'staging', version, _page: other.page })
    assert.equal((await api('GET', `/guests/${victim.id}`, { token: other.token })).status, 404, 'narrowed')
    await bob.sends(`${other.page}/delete`)
    assert.equal((await me()).status, 401, 'ended')
    const ended = await repository.push(`${git}/atlas/staging`, ['main'], { key: other.key.path })
    assert.match(ended.text, /Permission denied/, ended.text)
    await bob.sends(robots, { robot: 'over', role: 'maintainer', environments: 'prod' })
    assert.equal((await me()).status, 401, 'one of the same name has nothing of it')
    await bob.sends(`${other.page}/delete`)
  })

  await attack('is told apart in the audit', async () => {
    await until('the audit', async () => (await alice.get('/audit?action=robot')).html.includes('atlas/dev'))
  })
}
