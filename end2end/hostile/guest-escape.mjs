// Root in a guest who wants the node: the public lists of ways out of a container, in one session.
import assert from 'node:assert/strict'
import { NODE, lab, reached } from './world.mjs'

/** What of a node no guest may change. */
const SETTINGS = ['kernel/core_pattern', 'kernel/modprobe', 'kernel/sysrq', 'vm/overcommit_memory', 'fs/aio-max-nr']
const settings = () => lab.onNode(NODE, `cd /proc/sys; head -n 1 ${SETTINGS.join(' ')} 2>/dev/null || true`)

export async function attacks(attack, { attacker, victim }) {
  const before = await settings()
  const marker = '/root/hostile-marker'
  await lab.onNode(NODE, `touch ${marker}; systemd-run -q --unit=hostile-listener socat ABSTRACT-LISTEN:hostile-abstract,fork /dev/null`)
  const found = reached(await attacker.attack('escape', { marker, abstract: 'hostile-abstract' }))
  await lab.onNode(NODE, `rm ${marker}; systemctl stop hostile-listener`)
  for (const one of found) await attack(one.attack, () => assert.equal(one.reached, null))

  await attack('its root is nobody on the node, and so is what it owns', async () => {
    assert.ok(await attacker.rootOnNode() >= 65_536)
    const owner = await lab.onNode(NODE, `stat -c %u /proc/$(lxc-info -n ${attacker.name} -pH)/root/usr/local/bin/hostile-suid`)
    assert.ok(Number(owner) >= 65_536, `a program with the set-user bit belongs to ${owner} on the node`)
  })

  await attack('two guests on a node have no id in common', async () => {
    const [one, other] = [await attacker.rootOnNode(), await victim.rootOnNode()]
    assert.ok(Math.abs(one - other) >= 65_536, `${one} and ${other}`)
  })

  await attack('a key that it put away is not found in another guest', async () => {
    const look = 'import ctypes; libc = ctypes.CDLL(None); print([libc.syscall(250, 10, ctypes.c_long(ring), b"user", b"hostile-key", 0) for ring in (-4, -5)])'
    assert.match(await victim.root('python3 -', { input: look }), /\[-1, -1\]/)
  })

  await attack('the settings of the node are as before', async () => assert.equal(await settings(), before))
}
