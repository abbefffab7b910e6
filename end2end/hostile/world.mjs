// What the attacks are made against, as members have it: a server, two nodes, a directory, DNS; a victim's guest with
// a page under a name, and an attacker's guest beside it on the same node, requested by the forms.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { Database } from '../database.mjs'
import * as lab from '../lab.mjs'
import * as pages from '../pages.mjs'
import { run, until } from '../process.mjs'
import { Server } from '../server.mjs'
import { Session, formIn } from './session.mjs'

/** The node that attacker and victim share, and the one that is taken over. */
export const NODE = 'node1'
export const OTHER = 'node2'
export const zone = `hostile.${lab.lab.zone}`
const script = name => readFileSync(fileURLToPath(new URL(`guest/${name}.py`, import.meta.url)), 'utf8')

/** A guest: its page, name, address, and a way into it as its root. */
export class Guest {
  constructor(owner, place, name, key) {
    Object.assign(this, { owner, place, name, key })
  }

  /** Waits until it runs, and knows where it is. */
  async ready() {
    const html = await pages.untilStatus(this.owner, this.place, 'Running')
    this.id = this.place.split('/').at(-1)
    this.shown = pages.valueIn(html, 'ssh')
    this.ip = pages.valueIn(html, 'ip').split('/')[0]
    this.mac = pages.valueIn(html, 'mac') ?? `00:16:3e:${this.ip.split('.').slice(1).map(part => Number(part).toString(16).padStart(2, '0')).join(':')}`
    await until(`a login to ${this.name}`, () => this.root('true').then(() => true), { pause: 50 })
    return this
  }

  /** A command as its root, by its SSH port and the member's key. */
  root(command, options) {
    return lab.pasted(this.shown, this.key, `sudo -n ${command}`, options)
  }

  /** A script of `guest/` as its root; gives what it prints. */
  attack(name, facts = {}, options = {}) {
    const text = `import json\n${script('attack')}\n${script(name)}`
    return this.root(`python3 - '${JSON.stringify(facts)}'`, { input: text, timeout: 90_000, ...options })
  }

  /** Serves a page with this text at port 80. */
  async serve(text) {
    const page = `set -e; mkdir -p /srv/page; echo '${text}' > /srv/page/index.html; systemd-run -q --unit=page --working-directory=/srv/page python3 -m http.server 80`
    await this.root('sh -s', { input: page })
  }

  /** The id on the node of its root, who has no other name there. */
  async rootOnNode() {
    return Number(await lab.onNode(NODE, `stat -c %u /proc/$(lxc-info -n ${this.name} -pH)/root/root`))
  }
}

/** The lines of an attack script, by attack. */
export const reached = text => text.trim().split('\n').map(line => JSON.parse(line))

async function link(alice, node) {
  const form = formIn((await alice.get('/nodes/link')).html, '/nodes/link')
  const probed = await alice.post('/nodes/link', { ...form, address: lab.lab.nodes[node], step: 'probe' })
  const confirm = formIn(probed.html, '/nodes')
  const shown = pages.valueIn(probed.html, 'fingerprint')
  assert.ok((await lab.fingerprints(node)).includes(shown), `${node} shows its own host key`)
  const place = await alice.sends('/nodes', { ...confirm, password: lab.lab.nodePassword })
  await pages.untilStatus(alice, place, 'Linked')
  await alice.sends(`${place}/initialize`)
  await pages.untilReady(alice, place)
  return place
}

export class World {
  /** Without `guests` there are only the server, its members and two nodes. */
  static async begin(settings = {}, { guests = true } = {}) {
    await lab.cleanLab()
    const world = new World()
    world.database = await Database.make('corpus_hostile')
    world.server = await Server.start('hostile', {
      '': { database_url: world.database.url, trusted_proxies: ['127.0.0.1'], ...settings },
    })
    world.people = {}
    try {
      await world.fill()
      if (guests) await world.settle()
    } catch (error) {
      world.server.failed = true
      await world.end()
      throw error
    }
    return world
  }

  /** A session of somebody, from an address of their own. */
  session(address) {
    return new Session(this.server.url, { address })
  }

  async enters(login, address) {
    const session = await this.session(address).enter(login, lab.lab.password)
    session.key = await lab.makeKey(path.join(this.server.folder, login))
    await session.sends('/keys', { line: session.key.line })
    this.people[login] = session
    return session
  }

  async fill() {
    const alice = await this.enters('alice', '192.0.2.1')
    const [bob, , dave, mallory] = [await this.enters('bob', '192.0.2.2'), await this.enters('carol', '192.0.2.3'), await this.enters('dave', '192.0.2.4'), await this.enters('twin1', '192.0.2.66')]
    Object.assign(this, { alice, bob, carol: this.people.carol, dave, mallory })
    await alice.sends('/zones', { name: zone, access: 'all' })
    // The attacker is nobody's friend: the first of a project of their own.
    await alice.sends('/projects/borealis/members', { login: 'twin1', role: 'maintainer' })
    const [node, other] = await Promise.all([link(alice, NODE), link(alice, OTHER)])
    Object.assign(this, { node, other })
  }

  async settle() {
    const { bob, mallory, node } = this
    const on = place => place.split('/').at(-1)
    const common = { size: 'xxsmall', environment: 'dev', node: on(node) }
    this.victim = await this.requested(bob, { name: `victim.${zone}`, project: 'atlas', ...common, environment: 'prod' })
    this.attacker = await this.requested(mallory, { name: `attacker.${zone}`, project: 'borealis', ...common, backing: 'loop' })
    await Promise.all([this.victim.ready(), this.attacker.ready()])
    await Promise.all([this.victim.serve('the victim'), this.attacker.serve('the attacker')])
    this.site = await this.attach(this.victim, `site.${zone}`)
    this.evil = await this.attach(this.attacker, `evil.${zone}`)
  }

  async requested(owner, values) {
    return new Guest(owner, await owner.requestGuest(values), values.name, owner.key.path)
  }

  async attach(guest, name) {
    await guest.owner.sends(`${guest.place}/names`, { name })
    await pages.nameIs(guest.owner, guest.place, name, 'Attached')
    return name
  }

  /** The answer of the victim's page, as anybody gets it. */
  async page(name = this.site, options) {
    return (await lab.httpGet(lab.lab.nodes[NODE], name, options)).body.trim()
  }

  /** Asks for the victim's page some times; fails unless all answers are the victim's own. */
  async unharmed(times = 5) {
    for (let time = 0; time < times; time += 1) assert.equal(await this.page(), 'the victim')
  }

  async end() {
    await this.server.stop()
    if (this.server.failed) console.log(`kept: the database ${this.database.url}`)
    else await this.database.remove()
  }
}

export { lab, pages, run, until }
