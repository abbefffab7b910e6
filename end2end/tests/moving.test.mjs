// A guest in which files change at 10 MB/s while it is moved: for how long it stands still, as it sees itself and as its page
// says. What changed since its first copy is all that it stands still for.
import assert from 'node:assert/strict'
import test from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import { note, seconds } from '../measures.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const NODES = ['node1', 'node2']
/** So many files of 10 MB: 1 GB. */
const FILES = 100
/** How long its files are there before it moves, but for those that change. */
const SETTLED = 20_000
/** Files are changed by a program that a boot starts again, so they change before the move and after it. */
const BUSY = `#!/bin/sh
while :; do
  for n in $(seq ${FILES}); do head -c 10000000 /dev/urandom >/srv/files/$n; sleep 1; done
done
`
const BEATS = '#!/bin/sh\nwhile :; do date +%s%3N >>/srv/beats; sleep 0.05; done\n'

const unit = program => `[Service]\nExecStart=${program}\nRestart=always\n[Install]\nWantedBy=multi-user.target\n`

test('a guest whose files change at 10 MB/s moves', async t => {
  await lab.cleanLab()
  const server = await Server.start('moving')
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
  })
  const step = story(t, visitors, server)
  const measured = {}
  let alice, guest, name

  const enters = async login => {
    const visitor = await Visitor.open(browser, server)
    visitors.push(visitor)
    return visitor.enter(login, lab.lab.password)
  }

  /** A script of ours in the guest, wherever it is. */
  const inside = (node, script) => lab.onNode(node, `lxc-attach -n ${name} -- sh -s`, { input: script, timeout: 120_000 })
  const seen = async () => (await alice.context.request.get(`/api/v1${guest}`)).json()

  await step('two nodes, and a guest on the first one', async () => {
    alice = await enters('alice')
    const bob = await enters('bob')
    const first = (await pages.readyNode(alice, NODES[0])).split('/').at(-1)
    await pages.readyNode(alice, NODES[1])
    name = `moving.${lab.lab.zone}`
    guest = await pages.requestGuest(bob, { name, size: 'medium', backing: 'loop', node: first })
    await pages.untilStatus(bob, guest, 'Running')
  })

  await step('it has 1 GB of files, one of which changes each second', async () => {
    await inside(NODES[0], `set -e
mkdir -p /srv/files
for n in $(seq ${FILES}); do head -c 10000000 /dev/urandom >/srv/files/$n; done
cat >/usr/local/bin/busy <<'END'
${BUSY}END
cat >/usr/local/bin/beats <<'END'
${BEATS}END
chmod 755 /usr/local/bin/busy /usr/local/bin/beats
printf '${unit('/usr/local/bin/busy')}' >/etc/systemd/system/busy.service
printf '${unit('/usr/local/bin/beats')}' >/etc/systemd/system/beats.service
systemctl enable --now busy beats
`)
    // What was written seconds before it is asked is brought twice, for clocks that differ.
    await sleep(SETTLED)
  })

  await step('it moves, and stands still for what changed only', async () => {
    await alice.page.goto(`${guest}/move`)
    const began = performance.now()
    await pages.press(alice, 'Move it')
    const moved = await until('it to be moved', async () => {
      const now = await seen()
      return now.last_move && now.line.state === 'running' && now
    }, { limit: 600_000, pause: 500 })
    measured.whole = performance.now() - began
    measured.told = moved.last_move.downtime_ms
    measured.bytes = moved.last_move.bytes
    assert.equal(moved.line.node_address, lab.lab.nodes[NODES[1]])
    const beats = (await until('beats after it', async () => {
      const all = (await inside(NODES[1], 'cat /srv/beats')).trim().split('\n').map(Number)
      return all.length > 20 && Date.now() - all.at(-1) < 5_000 && all
    }, { pause: 500 })).filter(Number.isFinite)
    measured.gap = Math.max(...beats.slice(1).map((at, index) => at - beats[index]))
    const whole = await inside(NODES[1], `ls -l /srv/files | awk '$5 == 10000000' | wc -l`)
    assert.ok(Number(whole) >= FILES - 1, `${whole} files are whole`)
    assert.ok(measured.gap < 60_000, `it stood still for ${measured.gap} ms`)
  })

  await step('it is destroyed', async () => {
    await pages.destroy(alice, guest, name)
  })

  note('A guest with 1 GB of files that change at 10 MB/s is moved', [
    ['from the question to the guest on the other node', seconds(measured.whole)],
    ['what was brought while it stood still', `${(measured.bytes / 1e6).toFixed(0)} MB`],
    ['for how long it stood still, as its page says', seconds(measured.told)],
    ['the same, as a program in it saw', seconds(measured.gap)],
  ])
})
