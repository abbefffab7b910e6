// A member who is hostile beyond their roles: every form with the ids of others, fields that no form offers, names that
// are somebody's, a login that is not theirs.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { formIn } from './session.mjs'
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
  // What is sent as a file only has no form.
  .filter(([, { requestBody }]) => !requestBody || 'application/json' in requestBody.content)
  .map(([method, operation]) => ({ path: method === 'delete' ? `${path}/delete` : path, fields: fieldsOf(operation) })))
/** Forms for everybody, about nothing but who sends them, or what they have; the audit has an attack of its own. */
const OWN = ['/keys', '/tokens', '/notices/read', '/views', '/me/mail', '/me/first-steps/dismiss', '/audit/export',
  '/requests/projects', '/requests/nodes', '/requests/initializations', '/requests/names']

export async function attacks(attack, world) {
  const { alice, bob, carol, mallory, attacker, victim, server } = world
  const [[job]] = await world.database.rows(`select id from jobs where guest_id = '${victim.id}' and kind = 'guest_create'`)
  const [[zoneId]] = await world.database.rows(`select id from zones where name = '${zone}'`)
  const [[nameId]] = await world.database.rows(`select id from dns_names where name = '${world.site}'`)
  const [[keyId]] = await world.database.rows("select k.id from ssh_keys k join users u on u.id = k.user_id where u.login = 'bob' limit 1")
  const [[noticeId] = []] = await world.database.rows("select n.id from notices n join users u on u.id = n.user_id where u.login = 'bob' limit 1")
  const values = { notice: noticeId, project: 'atlas', login: 'twin1', environment: 'prod', guest: victim.id, job, zone: zoneId, name: nameId, key: keyId, node: world.node.split('/').at(-1) }
  // Ids that are names too: a name that is none is refused before anything else is looked at.
  const filled = path => path.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? `a${randomUUID().slice(1)}`)
  /** Ids of others wherever one is asked for; all else is as it should be. */
  const ids = { project: 'atlas', projects: 'borealis', node: values.node, login: 'twin1', role: 'maintainer' }
  const size = { memory: '512 MiB', cpu: '1' }
  const sent = (fields, path) => Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, ids[name] ?? (/guest|requests|profiles/.test(path) ? size[name] : undefined) ?? (name === 'guest' ? attacker.id : value)]))

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
      if (answer.status !== 401 || answer.place) taken.push(`${path}: ${answer.status} ${answer.place}`)
    }
    assert.deepEqual(taken, [])
  })

  await attack('what others typed is shown to nobody else, however it is asked for', async () => {
    const typed = { name: 'Typed By Bob', project: 'atlas', password: 'a password that is long', _page: '/guests/new' }
    const { place } = await bob.ask('/guests', { form: typed })
    assert.ok(pages.isKept(place), place)
    assert.ok((await bob.get(place)).html.includes(typed.name))
    const query = new URL(place, server.url).search
    const told = []
    for (const page of ['/guests/new', '/guests', '/projects/new', '/login', '/api/v1/guests']) {
      const { html } = await mallory.get(`${page}${query}`)
      if (html.includes(typed.name)) told.push(page)
    }
    // Neither does a form take its place, or make it go.
    const from = { headers: { referer: new URL(place, server.url).href } }
    await mallory.post('/guests', { ...typed, name: 'Typed By Mallory' }, from)
    await mallory.post('/keys', { line: 'no key', _page: '/guests/new' }, from)
    assert.deepEqual(told, [])
    assert.ok((await bob.get(place)).html.includes(typed.name))
  })

  await attack('forms that are refused fill no table, and no secret stays in it', async () => {
    const secret = readFileSync(mallory.key.path, 'utf8')
    for (let number = 0; number < 400; number += 1) {
      await mallory.ask('/guests', { form: { name: `No Name ${number} ${'x'.repeat(50_000)}`, password: 'hush-hush-hush-hush', _page: '/guests/new' } })
    }
    await mallory.ask('/keys', { form: { line: secret, _page: '/keys' } })
    const ofMallory = "from kept_forms k join users u on u.id = k.user_id where u.login = 'twin1'"
    const [[rows, bytes]] = await world.database.rows(`select count(*), sum(octet_length(k.state::text)) ${ofMallory}`)
    assert.ok(Number(rows) <= 8 && Number(bytes) < 8 * 128 * 1024, `${rows} rows, ${bytes} bytes`)
    const [[held]] = await world.database.rows(`select count(*) ${ofMallory} and (k.state::text like '%hush%' or k.state::text like '%${secret.split('\n')[2].slice(0, 30)}%')`)
    assert.equal(held, '0')
  })

  await attack('a form leads a member to another site, past the login page or not', async () => {
    const stranger = world.session('192.0.2.77')
    const [[bob]] = await world.database.rows("select id from users where login = 'bob'")
    for (const page of ['//evil.example', 'https://evil.example', '/\\evil.example', '/\t/evil.example']) {
      const { place } = await mallory.ask('/guests', { form: { name: 'No Name', _page: page } })
      assert.ok(place.startsWith('/?kept='), place)
      const sent = Buffer.from(JSON.stringify([['_page', page], ['name', 'x'], ['_of_member', bob]])).toString('base64url')
      const entered = await stranger.ask('/login', { form: { login: 'bob', password: lab.lab.password, sent } })
      assert.ok(entered.place.startsWith('/?kept='), entered.place)
      const another = await world.session('192.0.2.78').ask('/login', { form: { login: 'carol', password: lab.lab.password, sent } })
      assert.ok(!another.place.includes('kept='), 'what bob typed is for bob')
    }
    const elsewhere = await world.session().ask('/guests', { form: { name: 'x' }, headers: { origin: 'https://evil.example' } })
    assert.equal(elsewhere.status, 403)
    assert.ok(!elsewhere.html.includes('name="sent"'))
  })

  await attack("a name from elsewhere is a way to another's name, or to one of our zones", async () => {
    const [, ...theirs] = world.site.split('.')
    for (const name of [world.site, `x.${world.site}`, `x.${theirs.join('.')}`, zone, `www.${zone}`, new URL(server.url).hostname, 'a b', '*.example.com', 'x'.repeat(300), "x'; drop table name_claims; --.example.com"]) {
      const answer = await mallory.post(`${attacker.place}/name-claims`, { name })
      assert.ok(answer.status === 422 && !answer.place, `${name}: ${answer.status} ${answer.place}`)
      assert.ok(!/atlas/.test(pages.errorsIn(answer.html)), 'whose it is is not told')
    }
    // Two projects may claim a name that neither has proven: each learns nothing of the other's, and has its own proof.
    const [of, ofVictim] = await Promise.all([mallory.ask(`${attacker.place}/name-claims`, { form: { name: 'wanted.example.com' } }), bob.ask(`${victim.place}/name-claims`, { form: { name: 'wanted.example.com' } })])
    const [own, other] = await Promise.all([mallory.get(of.place), bob.get(ofVictim.place)])
    const proof = ({ html }) => pages.valueIn(html, 'proof')
    assert.ok(proof(own) && proof(other) && proof(own) !== proof(other))
    assert.equal((await mallory.get(ofVictim.place)).status, 404)
    for (const form of ['ask', 'delete']) assert.equal((await mallory.post(`${ofVictim.place}/${form}`, {})).status, 404)
    await mallory.post(`${of.place}/delete`, {})
    await bob.post(`${ofVictim.place}/delete`, {})
  })

  await attack('a rule lets no guest of others in, and publishes no port that is somebody\'s', async () => {
    const place = `/guests/${attacker.id}`
    const taken = []
    const sends = async (path, form) => {
      const { status, place: next = '' } = await mallory.ask(`${place}/${path}`, { form: { protocol: 'tcp', ...form, _page: `${place}/firewall` } })
      if (status < 400 && !pages.isKept(next)) taken.push(`${path}: ${JSON.stringify(form)} ${next}`)
    }
    for (const from of [`guest:${victim.name}`, victim.ip, '10.5.0.0/16', 'environment:none', 'network:none', 'rubbish', '192.0.2.0/33', '192.0.2.1; accept']) {
      await sends('firewall', { from, ports: '1-65535' })
    }
    for (const ports of ['0', '65536', '80,443', '80; accept', '-']) await sends('firewall', { from: 'anywhere', ports })
    for (const node_port of ['22', '80', '443', '8080', '40000', '50000', '0', '65536', '-1', '30000; accept']) await sends('ports', { port: '22', node_port })
    await sends('ports', { port: '22', from: `guest:${victim.name}` })
    assert.deepEqual(taken, [])
    const [[rules]] = await world.database.rows('select count(*) from firewall_rules')
    assert.equal(rules, '0')
  })

  await attack('of several guests at once, those of others are not there', async () => {
    for (const more of [{}, { step: 'yes', confirm: '1' }]) {
      const { place } = await mallory.ask('/guests/choice', { form: { do: 'destroy', guest: victim.id, ...more } })
      const { html } = await mallory.get(place)
      assert.ok(html.includes('A guest that is not there') && !withoutTwin(html).includes(victim.name), place)
    }
    const [[jobs]] = await world.database.rows(`select count(*) from jobs where guest_id = '${victim.id}' and kind = 'guest_destroy'`)
    assert.equal(jobs, '0')
    const { place } = await mallory.ask('/names', { form: { name: `x.${zone}`, guest: victim.name } })
    assert.match((await mallory.get(place)).html, /There is no guest [^<]* that you may see/)
  })

  await attack('no page tells of others\' guests, names and jobs', async () => {
    const told = []
    for (const page of ['/', '/guests', '/audit', '/audit?project=atlas', '/audit?actor=bob', '/audit?subject=victim', '/audit?action=guest.request&q=node', '/jobs?state=all', '/deployments', '/nodes', world.node, `${world.node}?all=1`, '/dns', '/projects', '/keys', '/guests/new', `/jobs?state=all&node=${world.node.split('/').at(-1)}`]) {
      const { html } = await mallory.get(page)
      for (const secret of [victim.name, world.site, victim.id, victim.ip]) if (withoutTwin(html).includes(secret)) told.push(`${page}: ${secret}`)
    }
    for (const page of [victim.place, `/jobs/${job}`, `/jobs/${job}/events`, '/projects/atlas', '/projects/atlas/prod', '/projects/atlas/deployments/1.json', `${victim.place}/destroy`]) {
      const { status } = await mallory.get(page)
      if (status !== 404) told.push(`${page}: ${status}`)
    }
    assert.deepEqual(told, [])
  })

  await attack('reads what was done in another project: by a filter, a page further on, a file, a view', async () => {
    const of = html => [...html.matchAll(/<td data-label="Project">([^<]*)</g)].map(([, project]) => project)
    const own = (await mallory.get('/audit')).html
    assert.ok(of(own).includes('borealis') && of(own).every(project => ['', 'borealis'].includes(project)), of(own).join())
    // A page of an operator's goes on at a time; mallory's goes on there with what is mallory's.
    const [, cursor] = /href="\/audit\?limit=1&(?:amp;)?cursor=([\w-]+)"/.exec((await alice.get('/audit?limit=1')).html) ?? []
    assert.ok(cursor, 'there is more than a page')
    const told = []
    for (const query of [`cursor=${cursor}`, 'project=atlas', `subject=${victim.name}`, 'actor=bob', 'actor=alice', 'action=node', 'action=zone', 'action=login&actor=bob', 'from=2000-01-01&until=2100-01-01&limit=200']) {
      const { html, status } = await mallory.get(`/audit?${query}`)
      assert.equal(status, 200, query)
      const table = /<table class="rows" aria-label="Audit">.*?<\/table>/s.exec(html)?.[0] ?? ''
      const found = of(table)
      if (found.some(project => !['', 'borealis'].includes(project)) || withoutTwin(table).includes(victim.name) || (/actor=(bob|alice)/.test(query) && found.includes(''))) told.push(query)
      for (const format of ['csv', 'jsonl']) {
        const form = { format, ...Object.fromEntries([...new URLSearchParams(query)].filter(([name]) => !['cursor', 'limit'].includes(name))) }
        const file = await mallory.ask('/audit/export', { form })
        assert.equal(file.status, 200, query)
        // What mallory exported before is mallory's own, with what was typed.
        const lines = file.html.split('\n').filter(line => !line.includes('audit.export')).map(withoutTwin)
        for (const secret of [victim.name, world.site, victim.id, '"atlas"', 'node.link', 'zone.create']) if (lines.some(line => line.includes(secret))) told.push(`${format} of ${query}: ${secret}`)
      }
    }
    assert.deepEqual(told, [])
    const elsewhere = await mallory.ask('/audit/export', { form: { format: 'csv' }, headers: { origin: 'https://evil.example' } })
    assert.equal(elsewhere.status, 403)
  })

  await attack('a row of the audit is changed or taken out by who has the server\'s own connection', async () => {
    const [[before]] = await world.database.rows('select count(*) from audit')
    for (const statement of [
      "update audit set actor = 'nobody'", 'delete from audit', "delete from audit where actor = 'twin1'", 'truncate audit',
      "set corpus.forgets_audit = 'on'; delete from audit", 'set session_replication_role = replica; delete from audit', 'select forget_audit(0, 1000000)',
    ]) await assert.rejects(world.database.rows(statement), /only added|at least/, statement)
    const [[after]] = await world.database.rows('select count(*) from audit')
    assert.ok(Number(after) >= Number(before))
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

  await attack('takes more than the quota of the project, by asking many times at once', async () => {
    const [policy, own] = ['/quota-policy', '/projects/borealis/quota']
    const taken = async () => Number((await world.database.rows("select coalesce(sum(t.guests), 0) from project_tallies t join projects p on p.id = t.project_id where p.name = 'borealis'"))[0][0])
    const page = (await alice.get('/projects/borealis')).html
    const before = await taken()
    await alice.sends(own, { ...formIn(page, own), guests: String(before + 2) })
    const form = await mallory.requestForm({ project: 'borealis', size: 'xxxsmall', node: world.node.split('/').at(-1) })
    const answers = await Promise.all(Array.from({ length: 20 }, (_, number) => mallory.post('/guests', { ...form, _id: randomUUID(), name: `race${number}.${zone}` })))
    const made = answers.map((answer, number) => ({ ...answer, name: `race${number}.${zone}` })).filter(({ status }) => status === 303)
    const refused = answers.filter(({ status }) => status !== 303)
    assert.equal(await taken(), before + made.length)
    assert.equal(made.length, 2, `as many as were left: ${refused.map(({ status }) => status)}`)
    // Of so many forms at once only the last are kept, to be shown with why.
    const said = refused.map(({ html }) => pages.errorsIn(html))
    assert.ok(said.some(text => /borealis has taken .* ask an operator to raise its quota/i.test(text)), said[0])
    // What is over it is not to be had by other doors either: theirs to set are neither the quota nor the default.
    const version = formIn((await alice.get('/quotas')).html, policy).version
    assert.equal((await mallory.post(policy, { version, guests: '1000', _page: '/quotas' })).status, 403)
    assert.equal((await mallory.post(own, { ...formIn((await alice.get('/projects/borealis')).html, own), guests: '1000' })).status, 403)
    // Nor what guests are like that say nothing of it.
    const profiles = [['/profiles', { name: 'mine' }], ['/profiles/mine', { size: 'xxxtrem', usual_in: 'dev', version }], ['/profiles/mine/delete', {}]]
    for (const [path, form] of profiles) assert.equal((await mallory.post(path, { ...form, _page: '/quotas' })).status, 403, path)
    // Nor the lines that configurations of guests may have; of those there are, another one's guest gets none.
    const mine = { key: 'lxc.prlimit.nofile', value: '1048576' }
    const lines = [['/lxc-lines', { name: 'mine', ...mine }], ['/lxc-lines/mine', { ...mine, version }], ['/lxc-lines/mine/delete', {}]]
    for (const [path, form] of lines) assert.equal((await mallory.post(path, { ...form, _page: '/quotas' })).status, 403, path)
    assert.ok([403, 404].includes((await mallory.post(`/guests/${victim.id}/settings`, { autostart: 'true', version, _page: '/quotas' })).status), "another one's guest")
    const shown = await mallory.get(attacker.place)
    const settings = { ...formIn(shown.html, `${attacker.place}/settings`), _page: attacker.place }
    for (const conf of ['mine', 'x\nlxc.include', '../../etc']) assert.equal((await mallory.post(`${attacker.place}/settings`, { ...settings, conf })).status, 422, conf)
    // What runs on a node or lets a guest's root out, not even operators allow.
    for (const [key, value] of [['lxc.hook.pre-start', '/bin/sh'], ['lxc.rootfs.path', '/'], ['lxc.prlimit.nofile', '1\nlxc.include = /etc/passwd'], ['lxc.sysctl.net.ipv4.ip_forward', '1\r\nlxc.cap.drop ='], ['lxc.sysctl.kernel.core_pattern', '1']]) {
      assert.equal((await alice.post('/lxc-lines', { name: 'evil', key, value, _page: '/quotas' })).status, 422, key)
    }
    for (const path of ['/api/v1/projects/atlas/quota', '/api/v1/projects/no-such/quota']) assert.equal((await mallory.get(path)).status, 404, path)
    assert.ok(!(await mallory.get('/quotas?q=atlas')).html.includes('/projects/atlas'))
    for (const { place, name } of made) {
      await pages.untilStatus(mallory, place, 'Running')
      await mallory.destroy(place, name)
    }
    assert.equal(await taken(), before, 'what was destroyed is free again')
    await alice.sends(own, { ...formIn((await alice.get('/projects/borealis')).html, own), guests: '' })
  })

  await attack('fills the node with snapshots, beyond the quota of the project, by asking many times at once', async () => {
    const own = '/projects/borealis/quota'
    const number = async statement => Number((await world.database.rows(statement))[0][0])
    const taken = () => number("select coalesce(sum(t.storage), 0) from project_tallies t join projects p on p.id = t.project_id where p.name = 'borealis'")
    const states = async () => (await world.database.rows(`select state from snapshots where guest_id = '${attacker.id}'`)).flat()
    const [before, has] = [await taken(), await number(`select storage from guests where id = '${attacker.id}'`)]
    await alice.sends(own, { ...formIn((await alice.get('/projects/borealis')).html, own), storage: `${before + has} B` })
    const answers = await Promise.all(Array.from({ length: 8 }, () => mallory.post(`${attacker.place}/snapshots`, {})))
    assert.equal(answers.filter(({ status }) => status === 303).length, 1, `as many as there is room for: ${answers.map(({ status }) => status)}`)
    await until('the snapshot', async () => (await states()).join() === 'ready')
    const inIt = await number(`select bytes from snapshots where guest_id = '${attacker.id}'`)
    assert.ok(inIt > 0 && inIt < has, `${inIt} of ${has}`)
    assert.equal(await taken(), before + inIt, 'what is in it is counted')
    // One more may need more than is left, although it would not: it is not begun.
    assert.equal((await mallory.post(`${attacker.place}/snapshots`, {})).status, 422)
    const [[id]] = await world.database.rows(`select id from snapshots where guest_id = '${attacker.id}'`)
    await mallory.sends(`${attacker.place}/snapshots/${id}/delete`, {})
    await until('nothing of it', async () => (await states()).length === 0)
    assert.equal(await taken(), before)
    await alice.sends(own, { ...formIn((await alice.get('/projects/borealis')).html, own), storage: '' })
  })

  await attack('brings what another guest kept into its own, or deletes it', async () => {
    const backups = async () => world.database.rows(`select id, state from guest_backups where guest_id = '${victim.id}'`)
    await bob.sends(`${victim.place}/backups`, {})
    await until('the backup', async () => (await backups())[0]?.[1] === 'ready', { limit: 180_000, pause: 200 })
    const [[id]] = await backups()
    for (const place of [attacker.place, victim.place]) {
      for (const what of ['restore', 'delete']) assert.equal((await mallory.post(`${place}/backups/${id}/${what}`, {})).status, 404, `${place} ${what}`)
    }
    assert.equal((await mallory.get(`${victim.place}/backups`)).status, 404)
    assert.ok(!(await mallory.get(`${attacker.place}/backups`)).html.includes(id))
    assert.equal((await mallory.post('/projects/atlas/environments/dev/backups/restore', {})).status, 404)
    await bob.sends(`${victim.place}/backups/${id}/delete`, {})
    await until('nothing of it', async () => (await backups()).length === 0, { limit: 60_000, pause: 200 })
    // No guest of his is made of a snapshot of it, and he resizes none.
    const snapshots = async () => world.database.rows(`select id, state from snapshots where guest_id = '${victim.id}'`)
    await bob.sends(`${victim.place}/snapshots`, {})
    await until('the snapshot', async () => (await snapshots())[0]?.[1] === 'ready', { limit: 60_000, pause: 200 })
    const [[snapshot]] = await snapshots()
    const form = await mallory.requestForm({ name: `stolen.${zone}`, project: 'borealis', size: 'small', node: world.node.split('/').at(-1) })
    const answer = await mallory.post('/guests', { ...form, snapshot })
    assert.ok(answer.status === 422 && answer.html.includes('There is no such snapshot in borealis.'), `${answer.status}`)
    for (const what of ['shrink', 'enlarge']) assert.equal((await mallory.post(`${victim.place}/${what}`, { size: 'large' })).status, 404, what)
    assert.equal((await mallory.post(`${victim.place}/snapshots/schedule`, { every: 'hour', keep: '1', deployments: '1', version: '0123456789abcdef' })).status, 404)
    await bob.sends(`${victim.place}/snapshots/${snapshot}/delete`, {})
    await until('nothing of it', async () => (await snapshots()).length === 0, { limit: 60_000, pause: 200 })
  })

  await attack('makes an image of what another guest holds, or a guest of an image of others', async () => {
    const own = '/projects/borealis/images'
    const taken = await mallory.post(own, { guest: victim.id, name: 'stolen', _page: own, _form: 'make' })
    assert.ok(taken.status === 422 && taken.html.includes('There is no such guest in borealis.'), `${taken.status}`)
    assert.equal((await mallory.post('/projects/atlas/images', { guest: victim.id, name: 'stolen' })).status, 404)
    assert.equal((await mallory.get('/projects/atlas/images')).status, 404)
    await bob.sends('/projects/atlas/images', { guest: victim.id, name: 'secret' })
    const versions = async () => (await world.database.rows("select v.sha256 from image_versions v join made_images i on i.id = v.image_id where i.name = 'secret'")).flat()
    await until('the image', async () => (await versions()).length === 1, { limit: 120_000, pause: 200 })
    const [sha256] = await versions()
    const form = await mallory.requestForm({ name: `stolen.${zone}`, project: 'borealis', size: 'small', node: world.node.split('/').at(-1) })
    // Neither by what its project calls it, nor by what nodes do.
    for (const image of ['secret', `secret-${sha256.slice(0, 12)}`]) {
      const answer = await mallory.post('/guests', { ...form, image })
      assert.ok(answer.status === 422 && answer.html.includes(`There is no image ${image}`), `${image}: ${answer.status}`)
    }
    assert.equal((await mallory.post('/projects/atlas/images/secret/delete', {})).status, 404)
    assert.equal((await mallory.post(`${own}/secret/delete`, {})).status, 404)
    // What is no path in a guest leads nowhere.
    for (const folder of ['../../etc', 'etc', '/etc/\u0000']) {
      const answer = await mallory.post(own, { guest: attacker.id, name: 'odd', folder })
      assert.equal(answer.status, 422, folder)
    }
    await bob.sends('/projects/atlas/images/secret/delete', {})
    assert.deepEqual(await versions(), [])
  })

  await attack('sends an archive that writes elsewhere, never ends, or is of others', async () => {
    const send = async (image, tar, project = 'borealis') => mallory.ask(`/api/v1/projects/${project}/images/${image}/archive`, {
      method: 'PUT', file: execFileSync('zstd', ['-qc'], { input: tar }), headers: { 'content-type': 'application/zstd' },
    })
    const entry = (path, { type = '0', link = '', content = '', uid = 0 } = {}) => {
      const header = Buffer.alloc(512)
      const put = (at, text) => header.write(text, at, 'latin1')
      put(0, path), put(100, '0000755'), put(108, uid.toString(8).padStart(7, '0')), put(116, '0000000'), put(124, content.length.toString(8).padStart(11, '0')), put(136, '00000000000'), put(148, '        '), put(156, type), put(157, link), put(257, 'ustar\u000000')
      put(148, `${header.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, '0')}\u0000 `)
      return Buffer.concat([header, Buffer.from(content), Buffer.alloc((512 - content.length % 512) % 512)])
    }
    const system = ['etc/passwd', 'etc/shadow', 'sbin/init', 'usr/sbin/sshd'].map(path => entry(path, { content: 'x' }))
    const archive = (...more) => Buffer.concat([...more, ...system, Buffer.alloc(1024)])
    assert.equal((await send('web', archive(), 'atlas')).status, 404)
    for (const [more, why] of [
      [[entry('../../etc/cron.d/x', { content: '* * * * * root id' })], 'leads out'],
      [[entry('etc', { type: '2', link: '/etc' })], 'in what is no folder'],
      [[entry('a', { type: '1', link: '/etc/shadow' })], 'another name of'],
      [[entry('a', { content: 'x', uid: 100_000 })], 'owner or group'],
      [[entry('etc/passwd', { content: 'y' })], 'there twice'],
    ]) {
      const answer = await send('odd', archive(...more))
      assert.ok(answer.status === 422 && answer.html.includes(why), `${why}: ${answer.status} ${answer.html}`)
    }
    assert.equal((await send('odd', Buffer.from('no archive'))).status, 422)
    assert.deepEqual(await world.database.rows("select i.name from made_images i join projects p on p.id = i.project_id where p.name = 'borealis'"), [])
  })

  await attack('takes the apex of a zone, a wildcard, a name of another', async () => {
    for (const name of [zone, `*.${zone}`, world.site, lab.lab.zone, 'localhost', 'www.example.org', 'x.node.internal', 'db.guest.internal']) {
      const answer = await mallory.post(`${attacker.place}/names`, { name })
      assert.ok([409, 422, 403].includes(answer.status), `${name}: ${answer.status} ${answer.place ?? ''}`)
    }
    for (const name of [zone, world.site]) {
      const answer = await mallory.post(`${attacker.place}/names`, { name, wildcard: 'true' })
      assert.ok([409, 422, 403].includes(answer.status), `*.${name}: ${answer.status} ${answer.place ?? ''}`)
    }
    await world.unharmed(2)
  })

  await attack('switches the name of another project, or his own to another project\'s guest', async () => {
    const names = JSON.parse((await alice.get('/api/v1/names?limit=200')).html).items
    const theirs = names.find(name => name.name === world.site)
    const guest = victim.place.split('/').pop()
    for (const to of [{ guest: attacker.place.split('/').pop() }, { environment: 'dev' }, { environment: 'prod' }]) {
      assert.equal((await mallory.post(`/names/${theirs.id}/switch`, to)).status, 404, JSON.stringify(to))
    }
    const own = JSON.parse((await mallory.get('/api/v1/names?limit=200')).html).items[0]
    if (own) assert.ok([404, 409].includes((await mallory.post(`/names/${own.id}/switch`, { guest })).status))
    assert.equal((await mallory.post(`/names/${theirs.id}/aliases`, { alias: `mallory.${zone}` })).status, 404)
    if (own) assert.ok([409, 422].includes((await mallory.post(`/names/${own.id}/aliases`, { alias: world.site })).status))
    // What an address points back to: his to another's name, another's to his.
    assert.equal((await mallory.post(`${attacker.place}/pointer`, { name: theirs.id })).status, 422)
    for (const name of [theirs.id, own?.id ?? '', '']) assert.equal((await mallory.post(`${victim.place}/pointer`, { name })).status, 404)
    const version = '0123456789abcdef'
    for (const [path, fields] of [['balance', { policy: 'round_robin', stickiness: 'none', version }], ['names', { name: `x.${zone}` }]]) {
      const answer = await mallory.post(`/projects/atlas/environments/prod/${path}`, fields)
      assert.equal(answer.status, 404, `${path}: ${pages.errorsIn(answer.html)}`)
    }
    assert.equal((await mallory.get('/api/v1/projects/atlas/environments/prod/balance')).status, 404)
    await world.unharmed(2)
  })

  await attack('reads or follows what visitors ask another project for, and takes all places to follow', async () => {
    const theirs = '/projects/atlas/environments/prod'
    for (const page of [`${theirs}/traffic`, '/projects/atlas/prod/traffic', `${theirs}/access/events`, `/api/v1${theirs}/traffic`, `/api/v1${theirs}/traffic?span=month`, `/api/v1${theirs}/access/events`]) {
      assert.equal((await mallory.get(page)).status, 404, page)
    }
    const cookie = [...mallory.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const own = `${server.url}/projects/borealis/environments/dev/access/events`
    const ending = new AbortController()
    const asked = await Promise.all(Array.from({ length: 8 }, () => fetch(own, { headers: { cookie }, signal: ending.signal })))
    const answered = asked.map(answer => answer.status).sort()
    ending.abort()
    assert.deepEqual(answered, [200, 200, 200, 200, 429, 429, 429, 429])
  })

  await attack('takes a name in a zone that is not for the project', async () => {
    const closed = `closed.${lab.lab.zone}`
    await alice.sends('/zones', { name: closed, access: 'only', projects: 'atlas' })
    const answer = await mallory.post(`${attacker.place}/names`, { name: `www.${closed}` })
    assert.ok([403, 404, 422].includes(answer.status), `${answer.status} ${answer.place ?? ''}`)
  })

  await attack('asks the operators, decides it himself, and fills their queue', async () => {
    const ask = name => mallory.post('/requests/projects', { name, comment: '<script>alert(1)</script>' })
    const { place, status } = await ask('free-for-all')
    assert.equal(status, 303)
    for (const decision of ['approve', 'refuse']) assert.equal((await mallory.post(`${place}/${decision}`, { reason: 'why not' })).status, 403, decision)
    assert.ok(!(await alice.get(place)).html.includes('<script>alert(1)'), 'what he says is text')
    const form = { name: `asked.${zone}`, project: 'atlas', environment: 'prod', size: 'small', comment: 'why not' }
    assert.equal((await mallory.post('/requests/guests', form)).status, 404, 'for a project that is not his')
    await Promise.all(Array.from({ length: 40 }, (_, number) => ask(`many${number}`)))
    const open = async () => Number((await world.database.rows("select count(*) from requests r join users u on u.id = r.asker_id where r.state = 'open' and u.login = 'twin1'"))[0][0])
    assert.ok(await open() <= 20, `${await open()} are open`)
    assert.equal((await mallory.get('/projects/free-for-all')).status, 404)
    await world.database.rows("update requests set state = 'withdrawn', decided_at = now() where state = 'open' returning id")
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

  await attack('previews stand below a name of others, or are made and ended in a project of others', async () => {
    const rules = '/projects/borealis/preview-rules'
    const commit = '1'.repeat(40)
    const set = async (fields) => mallory.post(rules, { ...formIn((await mallory.get('/projects/borealis')).html, rules), most: '3', ...fields })
    // A rule names nobody's name; what is asked for below it is judged.
    await set({ domain: world.site })
    const { status, html } = await mallory.post('/projects/borealis/previews', { preview: 'evil', commit, _page: '/projects/borealis' })
    assert.ok([409, 422].includes(status) && /is not free/i.test(pages.errorsIn(html)), `${status} ${pages.errorsIn(html)}`)
    for (const [path, form] of [['/projects/atlas/previews', { preview: 'evil', commit }], ['/projects/atlas/previews/evil/keep', {}], ['/projects/atlas/previews/evil/delete', {}]]) {
      assert.equal((await mallory.post(path, { ...form, _page: '/projects' })).status, 404, path)
    }
    const made = await world.database.rows('select name from projects where parent_id is not null')
    assert.deepEqual(made, [])
    await set({ most: '0', domain: '' })
  })

  await attack('reads, orders or uploads a certificate for the name of another', async () => {
    const page = `/names/${nameId}`
    assert.equal((await bob.get(page)).status, 200)
    for (const place of [page, `/api/v1${page}/certificate`, `/api/v1${page}/https`]) assert.equal((await mallory.get(place)).status, 404, place)
    const file = { chain: '-----BEGIN CERTIFICATE-----', key: readFileSync(mallory.key.path, 'utf8') }
    for (const [place, fields] of [['certificate/renew', {}], ['certificate/delete', {}], ['https', { redirect: 'true', version: '0123456789abcdef' }], ['certificate', { chain: file.chain, private_key: file.key }]]) {
      const answer = await mallory.post(`${page}/${place}`, { ...fields, _page: '/dns' })
      assert.equal(answer.status, 404, `${place}: ${pages.errorsIn(answer.html)}`)
    }
    assert.notEqual((await mallory.get('/api/v1/certificates')).status, 200)
    // Nor is a key in what its owner and the operators see.
    const seen = [await bob.get(page), await bob.get(`/api/v1${page}/certificate`), await alice.get('/certificates'), await alice.get('/api/v1/certificates')]
    assert.ok(seen.every(({ html }) => !html.includes('PRIVATE KEY')))
    assert.ok(!server.text().includes('PRIVATE KEY'), 'the log')
    const [[kept, open]] = await world.database.rows("select count(*), count(*) filter (where position('PRIVATE KEY' in encode(key_sealed, 'escape')) > 0) from certificates")
    assert.ok(Number(kept) > 0 && Number(open) === 0, `the database: ${open} of ${kept}`)
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
