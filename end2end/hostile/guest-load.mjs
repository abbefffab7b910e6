// Root in a guest who takes all there is: processes, memory, disk, what the kernel counts for a user, and its own
// limits. The bounds of the attacks themselves are what this machine bears, and far above what a guest may have.
import assert from 'node:assert/strict'
import { NODE, lab, until } from './world.mjs'

export async function attacks(attack, world) {
  const { attacker, victim } = world
  const takes = async (what, most, more = {}) => JSON.parse(await attacker.attack('load', { what, most, ...more }))
  const held = () => until('the attacker to hold it', () => attacker.root('test -e /run/hostile-holds').then(() => true), { pause: 100, limit: 20_000 })

  await attack('forks 3,000 processes', async () => {
    const got = await takes('processes', 3000)
    assert.ok(got < 3000, `${got} processes`)
    await world.unharmed(2)
  })

  await attack('fills 2 GB of memory', async () => {
    const got = await takes('memory', 2048)
    assert.ok(got < 2048, `${got} MB`)
    assert.equal((await victim.root('hostname')).trim(), victim.name, 'the victim lives')
  })

  await attack('fills 2 GB of memory with files', async () => {
    const got = await takes('shared_memory', 2048)
    assert.ok(got < 2048, `${got} MB`)
    await until('a login to the attacker', () => attacker.root('true').then(() => true))
  })

  await attack('fills the node\'s disk', async () => {
    const got = await takes('disk', 1536)
    assert.ok(got < 1536, `${got} MB in a guest of 1 GB`)
    await victim.root('sh -c "echo room > /srv/page/room"')
  })

  await attack('takes all that the kernel gives a user to watch files with', async () => {
    const taking = takes('watches', 9000, { hold: 2 })
    await Promise.race([held(), taking.then(() => {}, () => {})])
    const one = 'import ctypes; print(ctypes.CDLL(None).inotify_init())'
    assert.ok(Number(await victim.root('python3 -', { input: one })) >= 0, 'the victim may watch files')
    await taking
  })

  await attack('takes all room for keys in the kernel', async () => {
    // Where guests have no such calls at all, there is nothing to take.
    const one = 'import ctypes; print(ctypes.CDLL(None).syscall(248, b"user", b"own", b"x", 1, -2) > 0)'
    const before = await victim.root('python3 -', { input: one })
    const taking = takes('keys', 2000, { hold: 2 })
    await Promise.race([held(), taking.then(() => {}, () => {})])
    assert.equal(await victim.root('python3 -', { input: one }), before)
    await taking
  })

  await attack('raises its own limits', async () => {
    // What belongs to the node's root above and in the guest's control groups; what the guest divides among its own
    // processes is its own.
    const limits = `find /sys/fs/cgroup -path "*${attacker.name}*" -uid 0 "(" -name memory.limit_in_bytes -o -name pids.max -o -name cpu.cfs_quota_us -o -name memory.max -o -name cpu.max ")" | sort | while read -r f; do echo $f $(cat $f); done`
    const before = await lab.onNode(NODE, limits)
    assert.match(before, /memory/, 'there are limits')
    await attacker.root('bash -s', { input: `
      mount -o remount,rw /sys/fs/cgroup; for m in /sys/fs/cgroup/*; do mount -o remount,rw $m; done
      for f in $(find /sys/fs/cgroup -name memory.limit_in_bytes -o -name pids.max -o -name cpu.cfs_quota_us -o -name memory.max -o -name cpu.max); do
        for v in max -1 99999999999; do echo $v > $f; done; done; true` })
    assert.equal(await lab.onNode(NODE, limits), before)
    const got = await takes('memory', 2048)
    assert.ok(got < 2048, `${got} MB afterwards`)
  })
}
