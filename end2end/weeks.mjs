// A project with an environment and deployments as they would be after some weeks of work, put
// into a database by SQL: for looking at the pages that show them. Nothing runs behind it.
import { randomUUID } from 'node:crypto'

const quoted = value => (value === null ? 'null' : typeof value === 'number' ? String(value) : `'${String(typeof value === 'object' ? JSON.stringify(value) : value).replaceAll("'", "''")}'`)
const row = values => `(${Object.keys(values).join(', ')}) values (${Object.values(values).map(quoted).join(', ')})`
const hex = number => number.toString(16).padStart(7, '7').padEnd(40, '0')
const iso = ms => new Date(ms).toISOString()

const NOTE = 'rolling back to the archive before it'
const ERROR = 'Comment: manage.py migrate exited with 1: relation "tile_store" does not exist'

/** The phases of a run, and where one of them failed. */
function phasesOf(began, failed) {
  const recipe = (name, outcome, elapsed_ms, more = {}) => ({ name, outcome, elapsed_ms, reason: null, lines: [1, 100], failing_line: null, states: [], ...more })
  const state = (id, ok) => ({ id, function: 'cmd.run', name: `manage.py ${id}`, ok, changed: ok, comment: ok ? '142 files' : 'exited with 1', elapsed_ms: 900 })
  const phase = (name, outcome, elapsed_ms, recipes = []) => ({ phase: name, outcome, began_ms: outcome === 'skipped' ? null : began, elapsed_ms, recipes })
  const install = [recipe('00_packages.sls', 'done', 18_200, { states: [state('collect', true)] }), recipe('10_venv.sh', 'done', 9_900)]
  if (failed) install.push(recipe('20_migrate.sls', 'failed', 3_500, { reason: 'state migrate-tiles failed', failing_line: 415, states: [state('migrate-tiles', false), state('cache', true)] }))
  const rest = failed ? 'skipped' : 'done'
  return [phase('archive', 'done', 3_100, [recipe('(built in)', 'done', 3_100)]), phase('sync', 'done', 800), phase('release-sync', 'done', 1_200),
    phase('install', failed ? 'failed' : 'done', 31_600, install), phase('fixperms', rest, failed ? 0 : 300), phase('prove', rest, failed ? 0 : 900),
    ...(failed ? [phase('rollback', 'done', 4_900, [recipe('(built in)', 'done', 4_900)])] : []), phase('notify', 'done', 400)]
}

function reportOf({ id, project, environment, state, began, ended, commit, live, archives }) {
  const failed = state === 'rolled_back'
  const proof = (moment, seen) => ({ moment, check: `GET http://${environment}.carto.example.net/health is 200`, passed: true, seen, elapsed_ms: 38 })
  return {
    id, project, environment, state, trigger: 'push', by: 'bob', commit, pillar: null, previous: hex(0x1d2a9c4),
    commits: [{ id: commit, subject: 'Move tiles to the new store <b>', author: 'Mia Meier', at_ms: began - 9_000_000 }],
    ordered_ms: began - 1_000, began_ms: began, ended_ms: ended, phases: phasesOf(began, failed),
    fault: failed ? { phase: 'install', recipe: '20_migrate.sls', message: 'state migrate-tiles failed: manage.py migrate exited with 1', line: 415 } : null,
    proofs: [proof('before', 'HTTP 200 in 41 ms'), proof(failed ? 'rolled_back' : 'after', 'HTTP 200 in 38 ms')],
    live, failed_tree: failed ? `archives/${id}/project.failed` : null, archives, lines: 452,
  }
}

/**
 * Puts a node, a guest, an environment and deployments of the project into the database; returns
 * the numbers of one that failed, one that is live, and one that seems to run.
 */
export async function fill(database, { project, environment = 'staging', address, deployments = 24 }) {
  const [[projectId]] = await database.rows(`select id from projects where name = '${project}'`)
  const [node, guest] = [randomUUID(), randomUUID()]
  const name = `${environment}.carto.example.net`
  await database.rows(`insert into nodes ${row({ id: node, address, ssh_port: 22, ssh_user: 'root', host_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4mVQb3kV4t1pW8mQ1dJc0m2b5x0fC7uQ0n3bq8l2aR', environments: `{${environment}}`, state: 'failed', network: '10.5.0.1/16', bridge: 'lxcbr1', slots: 8 })}`)
  await database.rows(`insert into guests ${row({ id: guest, name, node_id: node, project_id: projectId, environment, driver: 'lxc', image: 'debian-12', backing: 'overlayfs', size: 'small', mode: 'masterless', ip: '10.5.0.20', mac: '00:16:3e:00:f1:81', ssh_port: 40020, id_range: 1073741824, state: 'running' })}`)
  const now = Date.now()
  const ids = Array.from({ length: deployments }, () => randomUUID())
  // What each of three deployments found live: the one before it that had not failed.
  const archives = [[-2, -3], [-3, -5], [-5, -6]].map(([of, held], at) => ({ id: ids.at(of), release: ids.at(held), commit: hex(deployments + held + 1), pillar: null, at_ms: now - (at + 1) * 90_000_000, bytes: 4_250_000, has_failed_tree: at === 1 }))
  const live = { deployment: ids.at(-2), commit: hex(deployments - 1), pillar: null, since_ms: now - 90_000_000 }
  const configuration = [['archives', 5, 'built-in'], ['database.host', 'db.example.net', 'defaults'], ['database.password', null, 'pillar'], ['workers', 4, 'set']]
    .map(([key, value, origin]) => ({ key, value, origin }))
  await database.rows(`insert into environments ${row({ project_id: projectId, environment, settings: { workers: 4 } })}`)
  await database.rows(`insert into environment_guests ${row({ guest_id: guest, project_id: projectId, environment, role: 'leader', state: 'ready', live, archives, configuration, observed_at: iso(now - 12_000) })}`)
  for (const [index, id] of ids.entries()) {
    const number = index + 1
    const failed = number === deployments || number % 7 === 0
    const began = now - (deployments - number) * 3 * 86_400_000 - 190_000
    const ended = began + 42_000 + number * 500
    const commit = hex(number)
    const state = failed ? 'rolled_back' : 'live'
    const report = reportOf({ id, project, environment, state, began, ended, commit, live, archives })
    await database.rows(`insert into deployments ${row({ id, project_id: projectId, number, environment, guest_id: guest, guest: name, trigger: 'push', by: 'bob', state, commit, subject: 'Move tiles to the new store <b>', fault: failed ? 'install: 20_migrate.sls: exited with 1' : null, ordered_at: iso(began - 1_000), ended_at: iso(ended), elapsed_ms: ended - began, report, final: 'true', lines: 452 })}`)
  }
  await lines(database, ids.at(-1), now)
  await database.rows(`update projects set last_deployment = ${deployments} where id = '${projectId}'`)
  return { failed: deployments, live: deployments - 1, ids, guest }
}

/**
 * A follower in the environment that `fill` made, behind by one deployment; the last one failed
 * there too. Returns its id and its name.
 */
export async function follow(database, { project, environment = 'staging', sample }) {
  const [[projectId]] = await database.rows(`select id from projects where name = '${project}'`)
  const [[node]] = await database.rows(`select node_id from guests where id = '${sample.guest}'`)
  const [id, name, now] = [randomUUID(), `${environment}-2.carto.example.net`, Date.now()]
  await database.rows(`insert into guests ${row({ id, name, node_id: node, project_id: projectId, environment, driver: 'lxc', image: 'debian-12', backing: 'overlayfs', size: 'small', mode: 'masterless', ip: '10.5.0.21', mac: '00:16:3e:00:f1:82', ssh_port: 40021, id_range: 1073807360, state: 'running' })}`)
  const part = async (number, state) => {
    const [part, began, commit] = [randomUUID(), now - 200_000, hex(number)]
    const report = reportOf({ id: part, project, environment, state, began, ended: began + 40_000, commit, live: null, archives: [] })
    await database.rows(`insert into deployments ${row({ id: part, project_id: projectId, number, environment, guest_id: id, guest: name, trigger: 'push', by: 'bob', state, commit, subject: 'Move tiles to the new store <b>', fault: state === 'live' ? null : 'install: 20_migrate.sls: exited with 1', ordered_at: iso(began), ended_at: iso(began + 40_000), elapsed_ms: 40_000, report, final: 'true', lines: 452, leader_id: sample.ids[number - 1] })}`)
    return part
  }
  const live = { deployment: await part(sample.live - 1, 'live'), commit: hex(sample.live - 1), pillar: null, since_ms: now - 200_000_000 }
  await database.rows(`insert into environment_guests ${row({ guest_id: id, project_id: projectId, environment, role: 'follower', state: 'ready', live, observed_at: iso(now - 12_000) })}`)
  await lines(database, await part(sample.failed, 'rolled_back'), now)
  return { id, name }
}

/** A deployment that seems to run: its install phase has begun. Returns its id; `number` must be free. */
export async function begin(database, { project, environment = 'staging', number, guest }) {
  const [[projectId]] = await database.rows(`select id from projects where name = '${project}'`)
  const [id, now] = [randomUUID(), Date.now()]
  const whole = reportOf({ id, project, environment, state: 'running', began: now - 9_000, ended: 0, commit: hex(number), live: null, archives: [] })
  const phases = [...whole.phases.slice(0, 3), { ...whole.phases[3], outcome: 'skipped', elapsed_ms: 0, recipes: [] }]
  const report = { ...whole, phases, proofs: [], lines: 0 }
  await database.rows(`insert into deployments ${row({ id, project_id: projectId, number, environment, guest_id: guest, guest: `${environment}.carto.example.net`, trigger: 'push', by: 'bob', state: 'running', commit: hex(number), subject: 'Faster', ordered_at: iso(now - 10_000), report })}`)
  return id
}

/** One more line of a log. */
export const say = (database, id, number, text) =>
  database.rows(`insert into deployment_log ${row({ deployment_id: id, number, at: iso(Date.now()), stream: 'out', text })}`)

/** It is live. */
export const ends = (database, id) => database.rows(`update deployments set state = 'live', ended_at = now(), elapsed_ms = 12000,
  report = jsonb_set(report, '{state}', '"live"') where id = '${id}'`)

/** A log of 452 lines whose line 415 says what failed. */
function lines(database, id, now) {
  const values = Array.from({ length: 452 }, (_, at) => {
    const number = at + 1
    const [stream, text] = number === 415 ? ['err', ERROR] : number === 417 ? ['note', NOTE] : ['out', `Collecting wheel number ${number} <script>alert(1)</script>`]
    return `('${id}', ${number}, '${iso(now - 60_000 + number)}', '${stream}', ${quoted(text)})`
  })
  return database.rows(`insert into deployment_log (deployment_id, number, at, stream, text) values ${values.join(', ')}`)
}
