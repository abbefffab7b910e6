// A member who is hostile beyond their roles: every form with the ids of others, fields that no form offers, names that
// are somebody's, a login that is not theirs.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { NODE, lab, pages, run, until, zone } from './world.mjs'

/** Every operation that changes something, as its form: where it is sent, and its fields. */
const { paths, components } = JSON.parse(readFileSync(fileURLToPath(new URL('../../docs/openapi.json', import.meta.url)), 'utf8'))
const resolved = schema => (schema?.$ref ? resolved(components.schemas[schema.$ref.split('/').at(-1)]) : schema)
/** A value that the field takes, as its schema says. */
const OF_FORMAT = { uuid: randomUUID, password: () => 'a password that is long', ipv4: () => '198.51.100.7' }
const valueOf = given => {
  const schema = resolved((given.oneOf ?? [given]).find(one => one.type !== 'null'))
  if (schema.oneOf || schema.allOf) return valueOf((schema.oneOf ?? schema.allOf)[0])
  if (schema.type === 'array') return [valueOf(schema.items)].flat()[0]
  return schema.example ?? schema.examples?.[0] ?? schema.enum?.[0] ?? schema.const ?? OF_FORMAT[schema.format]?.() ?? String(schema.minimum ?? 'true')
}
const fieldsOf = ({ requestBody, parameters = [] }) => {
  const { properties = {} } = resolved(requestBody?.content['application/json'].schema) ?? {}
  const version = parameters.find(({ name }) => name === 'If-Match')
  return { ...Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, valueOf(schema)])), ...(version && { version: valueOf(version.schema).replaceAll('"', '') }) }
}
const FORMS = Object.entries(paths).flatMap(([path, methods]) => Object.entries(methods)
  .filter(([method]) => ['post', 'put', 'delete'].includes(method))
  .map(([method, operation]) => ({ path: method === 'delete' ? `${path}/delete` : path, fields: fieldsOf(operation) })))
/** Forms for everybody, about nothing but who sends them. */
const OWN = ['/keys', '/tokens', '/me/mail']

export async function attacks(attack, world) {
  const { alice, bob, carol, mallory, attacker, victim, server } = world
  const [[job]] = await world.database.rows(`select id from jobs where guest_id = '${victim.id}' and kind = 'guest_create'`)
  const [[zoneId]] = await world.database.rows(`select id from zones where name = '${zone}'`)
  const [[nameId]] = await world.database.rows(`select id from dns_names where name = '${world.site}'`)
  const [[keyId]] = await world.database.rows("select k.id from ssh_keys k join users u on u.id = k.user_id where u.login = 'bob' limit 1")
  const values = { project: 'atlas', login: 'twin1', environment: 'prod', guest: victim.id, job, zone: zoneId, name: nameId, key: keyId, node: world.node.split('/').at(-1) }
  const filled = path => path.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? randomUUID())
  /** Ids of others wherever one is asked for; all else is as it should be. */
  const ids = { project: 'atlas', projects: 'borealis', node: values.node, login: 'twin1', role: 'maintainer' }
  const size = { memory: '512 MiB', cpu: '1' }
  const sent = (fields, path) => Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, ids[name] ?? (path.includes('/guest') ? size[name] : undefined) ?? (name === 'guest' ? attacker.id : value)]))

  await attack('no form takes the ids of others', async () => {
    assert.ok(FORMS.length > 30, 'the list of forms was found')
    const taken = []
    for (const { path, fields } of FORMS.filter(({ path }) => !OWN.includes(path))) {
      const answer = await mallory.post(filled(path), { ...sent(fields, path), _page: '/guests/new' })
      if (![403, 404].includes(answer.status)) taken.push(`${path}: ${answer.status} ${answer.place ?? pages.errorsIn(answer.html).slice(0, 200)}`)
    }
    assert.deepEqual(taken, [])
  })

  // The attacker's own guest of an earlier attack is called like the victim, and more.
  const withoutTwin = html => html.replaceAll(`${victim.name}-1`, '')

  await attack('no form takes anything of who is not signed in', async () => {
    const taken = []
    for (const { path, fields } of FORMS) {
      const answer = await world.session().post(filled(path), sent(fields, path))
      if (answer.status !== 303 || !answer.place.startsWith('/login')) taken.push(`${path}: ${answer.status} ${answer.place}`)
    }
    assert.deepEqual(taken, [])
  })

  await attack('no page tells of others\' guests, names and jobs', async () => {
    const told = []
    for (const page of ['/', '/guests', '/jobs?state=all', '/deployments', '/nodes', world.node, `${world.node}?all=1`, '/dns', '/projects', '/keys', '/guests/new', `/jobs?state=all&node=${world.node.split('/').at(-1)}`]) {
      const { html } = await mallory.get(page)
      for (const secret of [victim.name, world.site, victim.id, victim.ip]) if (withoutTwin(html).includes(secret)) told.push(`${page}: ${secret}`)
    }
    for (const page of [victim.place, `/jobs/${job}`, `/jobs/${job}/events`, '/projects/atlas', '/projects/atlas/prod', '/projects/atlas/deployments/1.json', `${victim.place}/destroy`]) {
      const { status } = await mallory.get(page)
      if (status !== 404) told.push(`${page}: ${status}`)
    }
    assert.equal((await mallory.get('/audit')).status, 403)
    assert.deepEqual(told, [])
  })

  await attack('what waits for a node tells nothing of others\' guests', async () => {
    const [[foreign]] = await world.database.rows(`select count(*) from jobs where guest_id = '${victim.id}'`)
    assert.ok(Number(foreign) > 0)
    const list = await mallory.get('/jobs?state=all')
    for (const [, place] of list.html.matchAll(/href="(\/jobs\/[0-9a-f-]{36})"/g)) {
      const { html, status } = await mallory.get(place)
      assert.ok(status !== 200 || !withoutTwin(html).includes(victim.name), `${place} tells of ${victim.name}`)
    }
  })

  await attack('a request with fields that no form offers makes nothing more than was asked', async () => {
    const form = await mallory.requestForm({ name: `more.${zone}`, project: 'borealis', node: world.node.split('/').at(-1) })
    for (const [forged, statuses] of [
      [{ project: 'atlas' }, [403, 404]], [{ ip: victim.ip }, [409, 422]], [{ mac: victim.mac }, [409, 422]], [{ ip: '10.5.0.1' }, [422]], [{ ip: lab.lab.nodes.node2 }, [422]],
      [{ name: victim.name }, [409, 422]], [{ name: '../../etc' }, [422]], [{ image: '../../../etc/passwd' }, [422]], [{ backing: 'lvm' }, [422]], [{ driver: 'docker' }, [422]], [{ names: world.site }, [409, 422]],
      [{ node: randomUUID() }, [404, 422]],
    ]) {
      const answer = await mallory.post('/guests', { ...form, _id: randomUUID(), ...forged })
      if (answer.status === 303) await mallory.destroy(answer.place, forged.name ?? form.name).catch(() => {})
      assert.ok(statuses.includes(answer.status), `${JSON.stringify(forged)}: ${answer.status} ${answer.place ?? ''}`)
    }
  })

  await attack('a guest that asks to be privileged, or for other limits, is not', async () => {
    const name = `forged.${zone}`
    const ask = async forged => mallory.post('/guests', { ...await mallory.requestForm({ name, project: 'borealis', size: 'xxxsmall', node: world.node.split('/').at(-1) }), ...forged })
    assert.equal((await ask({ privileged: 'on' })).status, 403, 'only ops may')
    assert.equal((await ask({ id_base: '0', ids: '0', slots: '100', unprivileged: 'off', apparmor: 'unconfined', host_key: 'x' })).status, 422, 'there are no such fields')
    const answer = await ask({})
    assert.equal(answer.status, 303, pages.errorsIn(answer.html))
    await pages.untilStatus(mallory, answer.place, 'Running')
    const root = Number(await lab.onNode(NODE, `stat -c %u /proc/$(lxc-info -n ${name} -pH)/root/root`))
    await mallory.destroy(answer.place, name)
    assert.ok(root >= 65_536, `its root is ${root} on the node`)
  })

  await attack('takes the apex of a zone, a wildcard, a name of another', async () => {
    for (const name of [zone, `*.${zone}`, world.site, lab.lab.zone, 'localhost', 'www.example.org']) {
      const answer = await mallory.post(`${attacker.place}/names`, { name })
      assert.ok([409, 422, 403].includes(answer.status), `${name}: ${answer.status} ${answer.place ?? ''}`)
    }
    await world.unharmed(2)
  })

  await attack('takes a name in a zone that is not for the project', async () => {
    const closed = `closed.${lab.lab.zone}`
    await alice.sends('/zones', { name: closed, access: 'only', projects: 'atlas' })
    const answer = await mallory.post(`${attacker.place}/names`, { name: `www.${closed}` })
    assert.ok([403, 404, 422].includes(answer.status), `${answer.status} ${answer.place ?? ''}`)
  })

  await attack('makes a project, and so becomes its maintainer, where only ops may', async () => {
    const answer = await mallory.post('/projects', { name: 'free-for-all' })
    assert.equal(answer.status, 403)
  })

  await attack('a developer decides a job that a maintainer started', async () => {
    for (const what of ['cancel', 'retry', 'abandon']) assert.equal((await carol.post(`/jobs/${job}/${what}`, what === 'abandon' ? { comment: 'mine' } : {})).status, 403, what)
  })

  await attack('a developer enters a guest of prod by its own SSH port', async () => {
    const key = { carol: carol.key.path, dave: world.dave.key.path, mallory: mallory.key.path }
    for (const [who, file] of Object.entries(key)) await assert.rejects(lab.pasted(victim.shown, file, 'true'), who)
    await lab.pasted(victim.shown, bob.key.path, 'true')
  })

  await attack('one address locks an account for all others', async () => {
    const from = address => world.session(address)
    for (let count = 0; count < 12; count += 1) await from('192.0.2.66').signIn('bob', `wrong-${count}`)
    const answer = await from('192.0.2.77').signIn('bob', lab.lab.password)
    assert.equal(answer.status, 303, 'bob signs in from an address of his own')
    assert.equal((await from('192.0.2.66').signIn('bob', 'wrong again')).status, 429, 'and the other one is still held back')
  })

  await attack('a session of the administrator outlives a new password', async () => {
    const admin = await world.session('192.0.2.9').enter('admin', server.administrator(), 'local')
    assert.equal((await admin.get('/audit')).status, 200)
    const binary = process.env.CORPUS_TEST_SERVER ?? fileURLToPath(new URL('../../target/corpus/corpus-server', import.meta.url))
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(CORPUS_|DATABASE_URL$)/.test(name)))
    await run(binary, ['--config', path.join(server.folder, 'corpus.toml'), 'reset-admin-password'], { env })
    await until('the session to end', async () => (await admin.get('/audit')).status !== 200, { limit: 5000 })
  })

  await attack('keeps what a lost role gave: pages, and the guest\'s SSH port', async () => {
    const twin = await world.enters('twin2', '192.0.2.67')
    await alice.sends('/projects/atlas/members', { login: 'twin2', role: 'maintainer' })
    await until('the key on the guest', () => lab.pasted(victim.shown, twin.key.path, 'true').then(() => true), { pause: 100 })
    assert.equal((await twin.get(victim.place)).status, 200)
    await alice.sends('/projects/atlas/members/twin2/delete')
    assert.equal((await twin.get(victim.place)).status, 404)
    await until('the key off the guest', () => lab.pasted(victim.shown, twin.key.path, 'true').then(() => false, () => true), { pause: 100, limit: 20_000 })
  })

  await attack('sits on the key of another', async () => {
    const key = await lab.makeKey(path.join(server.folder, 'squatted'))
    await mallory.sends('/keys', { line: key.line })
    const refused = await carol.post('/keys', { line: key.line })
    const html = refused.status === 303 ? (await carol.get(refused.place)).html : refused.html
    const proof = /printf '%s' '([^']*)' \| ssh-keygen -Y sign -n (\S+)/.exec(pages.valueIn(html, 'claim-command') ?? '')
    assert.ok(proof, `carol is told how to prove that the key is hers: ${pages.errorsIn(html)}`)
    const sign = file => run('ssh-keygen', ['-Y', 'sign', '-n', proof[2], '-f', file], { input: proof[1] })
    const claim = /action="(\/keys\/claim\/[^"]+)"/.exec(html)[1]
    assert.notEqual((await carol.post(claim, { signature: await sign(carol.key.path) })).status, 303, 'another key proves nothing')
    assert.equal((await mallory.post(claim, { signature: await sign(key.path) })).status, 404, 'it is nobody else\'s claim')
    await carol.sends(claim, { signature: await sign(key.path) })
    const print = (await run('ssh-keygen', ['-lf', `${key.path}.pub`])).split(' ')[1]
    assert.ok((await carol.get('/keys')).html.includes(print))
    assert.ok(!(await mallory.get('/keys')).html.includes(print))
  })
}
