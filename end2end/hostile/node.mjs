// A node whose root is hostile: it may do what it likes with its own guests, and nothing with anybody else's. A liar
// stands in the agent's place on the line that Corpus opens to it.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { OTHER, lab, pages, until } from './world.mjs'

const liar = readFileSync(fileURLToPath(new URL('guest/liar.pl', import.meta.url)), 'utf8')
const MB = 1e6

/** In front of whatever Corpus' key runs: the agent is the liar, if a mode is set. */
export const force = (victim, liar = '/root/liar.pl') => `#!/bin/sh
export VICTIM=${victim.name}
case "$SSH_ORIGINAL_COMMAND" in
  *" serve") [ ! -e /run/hostile-mode ] || exec perl ${liar} "$(cat /run/hostile-mode)" "$SSH_ORIGINAL_COMMAND" ;;
esac
exec sh -c "$SSH_ORIGINAL_COMMAND"
`

/** Ends the connections that run an agent, or the liar: the next one meets what stands there now. */
export const CUT = `for p in /proc/[0-9]*; do case "$(tr '\\0' ' ' < $p/cmdline 2>/dev/null)" in
  "/var/lib/corpus/agent/corpus-agent-"*" serve " | "perl "*"/liar.pl "*) kill -9 "$(cut -d' ' -f4 $p/stat)" "\${p#/proc/}" ;;
esac; done 2>/dev/null; true`

/** What a server under such an attack must still be: small, and as quick as ever to the others. */
export async function bounded(world, work, { grown = 250 * MB } = {}) {
  const before = world.server.resident()
  let [most, going] = [before, true]
  const took = []
  const watching = (async () => {
    while (going) {
      most = Math.max(most, world.server.resident())
      const answer = await world.bob.get(world.victim.place)
      assert.equal(answer.status, 200)
      took.push(answer.ms)
      await sleep(100)
    }
  })()
  try {
    await work()
  } finally {
    going = false
    await watching
  }
  assert.ok(most - before < grown, `the server grew by ${Math.round((most - before) / MB)} MB`)
  // The processors are shared with other tests: one page may wait for those.
  took.sort((a, b) => a - b)
  const [median, slowest] = [took[took.length >> 1], took.at(-1)].map(Math.round)
  assert.ok(median < 1500 && slowest < 15_000, `a page of another project took ${median} ms in the median, ${slowest} ms at most`)
}

/** A lie in the middle of an undo leaves a job stuck: told the truth, it ends when who may decides that. */
export async function unstuck(world, who) {
  const stuck = () => world.database.rows("select id from jobs where state = 'stuck'")
  for (const [job] of await stuck()) assert.equal((await who.post(`/jobs/${job}/retry`)).status, 303)
  await until('no job to be stuck', async () => (await world.database.rows("select 1 from jobs where state in ('stuck', 'undoing')")).length === 0, { limit: 60_000, pause: 200 })
}

export const stored = async world => Number((await world.database.rows('select pg_database_size(current_database())'))[0][0])

export async function attacks(attack, world) {
  const { alice, bob, victim, other } = world
  const mode = name => lab.onNode(OTHER, `${name ? `echo ${name} > /run/hostile-mode` : 'rm -f /run/hostile-mode'}; ${CUT}`)
  await lab.onNode(OTHER, 'cat > /root/liar.pl', { input: liar })
  await lab.onNode(OTHER, `cat > /root/force; chmod 700 /root/force; sed -i '/corpus/ { /command=/! s|^|command="/root/force" | }' /root/.ssh/authorized_keys`, { input: force(victim) })

  for (const name of ['line', 'endless', 'lies']) {
    await attack({ line: 'sends a line without end', endless: 'logs without end', lies: 'answers what was not asked, about guests that are not its own' }[name], async () => {
      const before = await stored(world)
      await bounded(world, async () => {
        await mode(name)
        const answer = await alice.post(`${other}/repair`)
        await sleep(8000)
        if (answer.status === 303) {
          const [row] = await world.database.rows(`select id from jobs where kind = 'node_repair' order by queue_order desc limit 1`)
          if (row) await alice.post(`/jobs/${row[0]}/cancel`)
        }
        await mode(null)
        await until('no job of the node to go on', async () => {
          const open = await world.database.rows(`select state from jobs where node_id = '${other.split('/').at(-1)}' and state in ('waiting', 'running', 'undoing')`)
          return open.length === 0
        }, { limit: 40_000, pause: 200 })
      })
      const grown = await stored(world) - before
      assert.ok(grown < 60 * MB, `the database grew by ${Math.round(grown / MB)} MB`)
      assert.equal(pages.statusIn((await bob.get(victim.place)).html), 'Running', 'the victim, on another node, is what it was')
    })
  }

  await attack('no job stays stuck, and the node is in service again when it tells the truth', async () => {
    await lab.onNode(OTHER, `sed -i 's|^command="/root/force" ||' /root/.ssh/authorized_keys; rm -f /root/force /root/liar.pl`)
    await mode(null)
    await unstuck(world, alice)
    await pages.untilStatus(alice, other, 'Ready', { limit: 60_000 })
  })

  await attack('nothing of another node\'s guests is told to it', async () => {
    const seen = await lab.onNode(OTHER, `grep -rls ${victim.name} /etc/corpus /var/lib/corpus /var/lib/lxc 2>/dev/null || true`)
    assert.equal(seen.trim(), '')
  })
}
