// Whether rows, nodes and DNS say the same, and whether each job did its work once, after servers or their database died.
import assert from 'node:assert/strict'
import { disorder, isOnce, isRefused, journals, runs } from './journals.mjs'
import * as lab from './lab.mjs'

/** Containers, routes and DNS of all nodes are those of the rows, which are those of the guests `kept`: none more, none less. */
export async function nodesAgree(database, { kept, nodes, zone }) {
  const guests = await database.rows('select g.name, g.ip, g.ssh_port, n.address, g.state from guests g join nodes n on n.id = g.node_id order by g.name')
  assert.deepEqual(guests.map(([name]) => name), kept.map(({ name }) => name).sort())
  assert.ok(guests.every(([,,,, state]) => state === 'running'), JSON.stringify(guests))
  for (const node of nodes) {
    const own = guests.filter(([,,, address]) => address === lab.lab.nodes[node])
    const containers = (await lab.onNode(node, 'lxc-ls -1 --running')).split('\n').map(line => line.trim()).filter(name => name && name !== 'tmpl')
    assert.deepEqual(containers.sort(), own.map(([name]) => name).sort(), node)
    assert.deepEqual((await lab.onNode(node, 'ls /var/lib/lxc | grep -v "^tmpl$" || true')).split('\n').filter(Boolean).sort(), containers, node)
    const lines = async file => (await lab.onNode(node, `cat /etc/corpus/${file}.map`)).split('\n').filter(Boolean).sort()
    assert.deepEqual(await lines('ports'), own.map(([, ip, port]) => `${port} ${ip}`).sort(), `routes to SSH on ${node}`)
    const sites = await database.rows(`select d.name, g.ip from dns_names d join guests g on g.id = d.guest_id join nodes n on n.id = g.node_id where n.address = '${lab.lab.nodes[node]}'`)
    assert.deepEqual(await lines('hosts'), sites.map(([name, ip]) => `${name} ${ip}`).sort(), `routes of names on ${node}`)
  }
  const names = (await database.rows('select name from dns_names order by name')).map(([name]) => `${name}.`)
  const records = (await lab.zoneRecords(zone)).filter(set => !['SOA', 'NS'].includes(set.type)).map(set => set.name)
  assert.deepEqual([...new Set(records)].sort(), names.sort())
}

/** No job did anything twice, by the nodes' own records. How much was asked of them, refused as overtaken, and how many jobs had two runs there. */
export async function ranOnce(database, nodes) {
  const kinds = new Map(await database.rows("select id, kind from jobs where state = 'done'"))
  const records = []
  for (const node of nodes) {
    for (const [job, lines] of await journals(node)) {
      if (kinds.has(job)) records.push({ node, job, kind: kinds.get(job), lines, parts: runs(lines) })
    }
  }
  assert.deepEqual(records.flatMap(({ node, kind, job, lines }) => disorder(lines).map(fault => `${node} ${kind} ${job}: ${fault}`)), [])
  // What a job of a kind asks of a node is what those asked that one server did alone.
  const whole = new Map()
  for (const { kind, parts } of records.filter(record => record.parts.length === 1)) {
    whole.set(kind, (whole.get(kind) ?? new Set()).add(parts[0].join()))
  }
  for (const [kind, all] of whole) assert.equal(all.size, 1, `${kind}: ${[...all].join(' | ')}`)
  const adopted = records.filter(({ parts }) => parts.length > 1)
  const twice = adopted.filter(({ kind, parts }) => !isOnce(parts, whole.get(kind) ?? new Set()))
  assert.deepEqual(twice.map(({ node, kind, job, parts }) => `${node} ${kind} ${job}: ${JSON.stringify(parts)}`), [])
  const asked = what => records.reduce((all, { lines }) => all + lines.filter(what).length, 0)
  return { requests: asked(() => true), fenced: asked(line => isRefused(line) && line.request !== 'apply_node'), adopted: adopted.length }
}
