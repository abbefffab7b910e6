// Root in a guest who lies: about its name, its host key and its files, to the agent of its node, to the controller
// and to who pushes to it.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { Repository } from '../git.mjs'
import { CUT, bounded, force, stored, unstuck } from './node.mjs'
import { formIn } from './session.mjs'
import { Guest, NODE, lab, pages, run, until } from './world.mjs'

const liar = readFileSync(fileURLToPath(new URL('guest/liar.pl', import.meta.url)), 'utf8')
const MB = 1e6

/** What a guest's root puts where the agent of its node reads and writes. */
const TRICKS = {
  'symbolic links to files of the node': `
    for file in /etc/hosts /etc/hostname /etc/resolv.conf /etc/ssh/ssh_host_ed25519_key /etc/machine-id; do ln -sfn /root/hostile-target $file; done
    rm -rf /etc/corpus/authorized_keys; ln -sfn /root/.ssh /etc/corpus/authorized_keys`,
  'a folder that leads out by ..': `
    rm -rf /etc/corpus; mkdir -p /a/b; ln -sfn ../../../../../../../../root /etc/corpus; mkdir -p /root/authorized_keys; ln -sfn ../../../../../../root/.ssh/authorized_keys /root/authorized_keys/sysadmin`,
  'links by /proc to other roots': `
    rm -rf /etc/corpus; ln -sfn /proc/1/root/../../etc /etc/corpus; ln -sfn /proc/self/fd/3 /etc/hosts`,
  'pipes that nobody writes to': `
    rm -rf /etc/corpus; mkdir -p /etc/corpus/authorized_keys; mkfifo /etc/corpus/authorized_keys/sysadmin; rm -f /etc/hosts /etc/resolv.conf; mkfifo /etc/hosts /etc/resolv.conf`,
  'files of terabytes, and ten thousand of them': `
    rm -rf /etc/corpus; mkdir -p /etc/corpus/authorized_keys; truncate -s 900G /etc/corpus/authorized_keys/sysadmin || truncate -s 100M /etc/corpus/authorized_keys/sysadmin
    cd /etc/corpus/authorized_keys; seq 10000 | sed 's/^/account/' | xargs touch`,
  'a file system of its own over them': `
    rm -rf /etc/corpus; mkdir -p /etc/corpus; mount -t tmpfs tmpfs /etc/corpus; mkdir /etc/corpus/authorized_keys; echo kept > /etc/corpus/authorized_keys/sysadmin; mount -o remount,ro /etc/corpus || true`,
  'files that cannot be changed': `
    umount -l /etc/corpus; rm -rf /etc/corpus; mkdir -p /etc/corpus/authorized_keys; echo kept > /etc/corpus/authorized_keys/sysadmin
    python3 -c '
import fcntl, os, struct
for path in ("/etc/corpus/authorized_keys/sysadmin", "/etc/corpus/authorized_keys", "/etc/hosts"):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK); fcntl.ioctl(fd, 0x40086602, struct.pack("l", 0x10))
    except OSError: pass
'`,
}

export async function attacks(attack, world) {
  const { alice, bob, dave, mallory, attacker, victim } = world
  const ofNode = () => lab.onNode(NODE, 'cat /root/hostile-target; ls -la --time-style=full-iso /root/.ssh /root | grep -v " \\.\\.$"; sha256sum /root/.ssh/* /etc/hosts /etc/hostname /etc/passwd /etc/shadow; ls /etc')
  let trickster

  await attack('is called as a leftover of the victim would be: NAME-1', async () => {
    trickster = new Guest(mallory, await mallory.requestGuest({ name: `${victim.name}-1`, project: 'borealis', size: 'xxsmall', environment: 'dev', node: world.node.split('/').at(-1) }), `${victim.name}-1`, mallory.key.path)
    await trickster.ready()
    assert.equal((await trickster.root('hostname')).trim(), trickster.name)
    await bob.sends(`${victim.place}/stop`)
    await pages.untilStatus(bob, victim.place, 'Stopped')
    assert.match(await lab.onNode(NODE, `lxc-info -n ${victim.name} -s`), /STOPPED/)
    assert.match(await lab.onNode(NODE, `lxc-info -n ${trickster.name} -s`), /RUNNING/)
    await bob.sends(`${victim.place}/start`)
    await pages.untilStatus(bob, victim.place, 'Running')
    await until('a login to the victim', () => victim.root('true').then(() => true))
    await victim.serve('the victim')
    await until('the victim\'s page', async () => await world.page() === 'the victim')
  })
  if (!trickster?.ip) return

  await lab.onNode(NODE, 'echo the-node-s > /root/hostile-target')
  const before = await ofNode()
  for (const [trick, script] of Object.entries(TRICKS)) {
    await attack(`${trick}: the node is as before, and the keys of other guests are brought at once`, async () => {
      await lab.onNode(NODE, `lxc-attach -n ${trickster.name} -- sh`, { input: script })
      const key = await lab.makeKey(path.join(world.server.folder, `bob-${Object.keys(TRICKS).indexOf(trick)}`))
      await bob.sends('/keys', { line: key.line })
      await until('the new key to open the victim', () => lab.pasted(victim.shown, key.path, 'true').then(() => true), { limit: 15_000, pause: 100 })
      assert.equal(await ofNode(), before)
    })
  }

  await attack('starts again with such files, and is destroyed with files that cannot be changed and folders without end', async () => {
    await lab.onNode(NODE, `lxc-attach -n ${trickster.name} -- python3 - '{"what":"depth","most":2000}'`, { input: `import json\n${['attack', 'load'].map(name => readFileSync(fileURLToPath(new URL(`guest/${name}.py`, import.meta.url)), 'utf8')).join('\n')}` })
    await mallory.sends(`${trickster.place}/stop`)
    await pages.untilStatus(mallory, trickster.place, 'Stopped')
    await mallory.destroy(trickster.place, trickster.name, 90_000)
    assert.equal(await ofNode(), before)
    assert.equal((await lab.onNode(NODE, `ls /var/lib/lxc | grep -x '${trickster.name}' || true`)).trim(), '')
    await lab.onNode(NODE, 'rm /root/hostile-target')
  })

  const project = '/projects/borealis'
  let url
  await attack('is an environment of its project', async () => {
    await mallory.sends(`${project}/environments`, { guest: attacker.id })
    const html = await pages.untilStatus(mallory, `${project}/dev`, 'Nothing live yet', { limit: 120_000 })
    url = /ssh:\/\/git@[^\s<"]+\/dev/.exec(html)[0]
  })
  if (!url) return

  await attack('a git connection that is open ends with the role', async () => {
    const twin = world.people.twin2 ?? await world.enters('twin2', '192.0.2.67')
    await alice.sends('/projects/borealis/members', { login: 'twin2', role: 'developer' })
    const { hostname, port, pathname } = new URL(url)
    const socket = path.join(world.server.folder, 'm')
    const ssh = (...args) => run('ssh', ['-S', socket, '-i', twin.key.path, '-p', port, '-o', 'IdentitiesOnly=yes', '-o', 'BatchMode=yes', '-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null', '-o', 'LogLevel=ERROR', ...args], { timeout: 15_000, input: '0000' })
    const reads = () => ssh(`git@${hostname}`, `git-upload-pack '${pathname}'`)
    const master = spawn('ssh', ['-M', '-N', '-S', socket, '-i', twin.key.path, '-p', port, '-o', 'IdentitiesOnly=yes', '-o', 'BatchMode=yes', '-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null', '-o', 'LogLevel=ERROR', `git@${hostname}`], { stdio: 'ignore' })
    const ended = new Promise(resolve => master.once('exit', resolve))
    try {
      await until('the connection', () => existsSync(socket), { pause: 50, limit: 15_000 })
      await until('a read by the open connection', () => reads().then(() => true), { pause: 100, limit: 15_000 })
      await alice.sends('/projects/borealis/members/twin2/delete')
      await assert.rejects(reads(), 'the open connection reads on')
      assert.notEqual(await Promise.race([ended.then(() => 'ended'), sleep(30_000, 'open')]), 'open', 'the connection is open after 30 s')
    } finally {
      master.kill()
    }
  })

  const repository = await Repository.make(path.join(world.server.folder, 'flood'), dave.key.path, {})

  await attack('floods the journal of a deployment', async () => {
    mkdirSync(path.join(repository.folder, '.corpus'), { recursive: true })
    const recipe = path.join(repository.folder, '.corpus/10-flood')
    writeFileSync(recipe, '#!/bin/sh\nyes "hostile hostile hostile hostile hostile hostile" | head -c 80000000\nhead -c 20000000 /dev/zero\nexit 0\n')
    chmodSync(recipe, 0o755)
    await repository.commit('A flood')
    const size = await stored(world)
    let pushed
    await bounded(world, async () => (pushed = await repository.push(url, ['main'], { timeout: 90_000 })))
    assert.match(pushed.text, /install/, pushed.text.slice(0, 2000))
    await until('the deployment to be over', async () => (await world.database.rows("select 1 from deployments where state in ('queued', 'running', 'waiting')")).length === 0, { limit: 60_000, pause: 200 }).catch(() => {})
    const grown = await stored(world) - size
    assert.ok(grown < 30 * MB, `the database grew by ${Math.round(grown / MB)} MB`)
  })

  await attack('writes to the terminal of who pushes', async () => {
    await attacker.root('sh -s', { input: `cat > /usr/local/lib/liar.pl <<'PERL'\n${liar}\nPERL\nmv /usr/local/bin/corpus-agent /usr/local/bin/corpus-agent.real
printf '#!/bin/sh\\ncase "$*" in *serve-git*) exec perl /usr/local/lib/liar.pl git "$*";; esac\\nexec /usr/local/bin/corpus-agent.real "$@"\\n' > /usr/local/bin/corpus-agent; chmod 755 /usr/local/bin/corpus-agent` })
    await repository.commit('Another')
    const pushed = await repository.push(url)
    await attacker.root('mv /usr/local/bin/corpus-agent.real /usr/local/bin/corpus-agent')
    assert.notEqual(pushed.code, 0)
    const control = /[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]/.exec(pushed.text.replaceAll('\r\n', '\n').replaceAll(/\r(?=remote: |$)/gm, ''))
    assert.equal(control, null, JSON.stringify(pushed.text))
  })

  await attack('dumps rubbish for a backup, and then for ever: its own waits, and nobody else\'s', async () => {
    const recipe = path.join(repository.folder, '.corpus/backup')
    const dumps = async script => {
      writeFileSync(recipe, `#!/bin/sh\n${script}\n`)
      chmodSync(recipe, 0o755)
      writeFileSync(path.join(repository.folder, '.corpus/10-flood'), '#!/bin/sh\nexit 0\n')
      await repository.commit('Dumps')
      const pushed = await repository.push(url)
      assert.equal(pushed.code, 0, pushed.text)
      await mallory.sends(`${attacker.place}/backups`, {})
    }
    const last = async guest => (await world.database.rows(`select state, dumping, dump_problem from guest_backups where guest_id = '${guest.id}' order by created_at desc limit 1`))[0] ?? []
    const size = await stored(world)
    await dumps('yes hostile | head -c 80000000; printf "\\033]0;hostile\\007 %2000d\\302\\205" 1 >&2; exit 1')
    const [, , problem] = await until('a backup without dumps', async () => (await last(attacker))[0] === 'ready' && await last(attacker), { limit: 300_000, pause: 200 })
    assert.match(problem, /^backup: exit status 1/)
    assert.ok(problem.length <= 1000 && !/[\x00-\x1f\x7f-\x9f]/.test(problem), JSON.stringify(problem))
    const grown = await stored(world) - size
    assert.ok(grown < 30 * MB, `the database grew by ${Math.round(grown / MB)} MB`)

    await dumps('trap "" TERM; setsid sleep 7919 & sleep 7919')
    await until('it to dump', async () => (await last(attacker))[1] === 't', { limit: 60_000, pause: 200 })
    await bob.sends(`${victim.place}/backups`, {})
    await until('the victim\'s backup', async () => (await last(victim))[0] === 'ready', { limit: 180_000, pause: 200 })
    assert.equal((await last(attacker))[1], 't')
    const [[job]] = await world.database.rows(`select id from jobs where guest_id = '${attacker.id}' and state = 'running'`)
    await mallory.post(`/jobs/${job}/cancel`)
    await until('nothing of it', async () => (await last(attacker))[1] === 'f', { limit: 60_000, pause: 200 })
    assert.equal((await attacker.root('pgrep -cf "sleep 791[9]" || true')).trim(), '0')
    const [[id]] = await world.database.rows(`select id from guest_backups where guest_id = '${victim.id}'`)
    await bob.sends(`${victim.place}/backups/${id}/delete`, {})
  })

  // It takes no connections while it reads its configuration.
  const mode = name => until('its sshd', () => attacker.root('sh -s', { input: `${name ? `echo ${name} > /run/hostile-mode` : 'rm -f /run/hostile-mode'}\n${CUT}` }).then(() => true), { pause: 50, limit: 15_000 })
  await attacker.root('sh -s', { input: `cat > /usr/local/bin/hostile-force <<'FORCE'\n${force(victim, '/usr/local/lib/liar.pl')}\nFORCE\nchmod 755 /usr/local/bin/hostile-force; echo 'ForceCommand /usr/local/bin/hostile-force' > /etc/ssh/sshd_config.d/hostile.conf; systemctl reload ssh` })
  for (const [name, title] of Object.entries({ line: 'sends the controller a line without end', endless: 'logs without end', lies: 'answers what was not asked' })) {
    await attack(title, async () => {
      await mode(name)
      const size = await stored(world)
      await bounded(world, async () => {
        await mallory.saveSettings(`${project}/dev`, `hostile: ${name}`)
        await sleep(4000)
        for (const [job] of await world.database.rows(`select id from jobs where guest_id = '${attacker.id}' and state in ('waiting', 'running', 'undoing')`)) await mallory.post(`/jobs/${job}/cancel`)
        await until('no job of the guest to go on', async () => (await world.database.rows(`select 1 from jobs where guest_id = '${attacker.id}' and state in ('waiting', 'running', 'undoing')`)).length === 0, { limit: 40_000, pause: 200 })
      }).finally(() => mode(null))
      const grown = await stored(world) - size
      assert.ok(grown < 60 * MB, `the database grew by ${Math.round(grown / MB)} MB`)
      await unstuck(world, mallory)
    })
  }
  await attacker.root('sh -c "rm /etc/ssh/sshd_config.d/hostile.conf; systemctl reload ssh"')
  await mode(null)

  await attack('a guest that shows another host key is said to, and its maintainer can confirm it', async () => {
    await attacker.root('sh -c "rm /etc/ssh/ssh_host_ed25519_key*; ssh-keygen -q -t ed25519 -N \'\' -f /etc/ssh/ssh_host_ed25519_key; systemctl restart ssh"')
    await mallory.saveSettings(`${project}/dev`, 'after: another key')
    const html = await until('the page to say it', async () => {
      const { html } = await mallory.get(attacker.place)
      return /host key/i.test(html) && html.includes(`${attacker.place}/host-key`) && html
    }, { limit: 300_000, pause: 200 })
    const form = formIn(html, `${attacker.place}/host-key`)
    assert.ok([403, 404].includes((await dave.post(`${attacker.place}/host-key`, form)).status), 'a developer can\'t confirm it')
    await mallory.sends(`${attacker.place}/host-key`, form)
    assert.ok(!(await mallory.get(attacker.place)).html.includes(`action="${attacker.place}/host-key"`), 'it is confirmed')
  })
}
