// What a hostile member, a visitor, root in a guest and a taken-over node can try, tried: each attack must fail, and whom it was
// meant for must be unharmed. docs/security.md says which promise each attack is against.
//
// CORPUS_HOSTILE names the attackers to let loose (`guest-escape member`); all of them when it is not set.
import assert from 'node:assert/strict'
import test from 'node:test'
import { World } from './world.mjs'

const ALL = ['guest-escape', 'guest-network', 'far', 'guest-lies', 'member', 'visitor', 'guest-load', 'node', 'token', 'robot', 'door']
const chosen = (process.env.CORPUS_HOSTILE ?? '').split(/\s+/).filter(Boolean)

test('who is hostile harms nobody', async t => {
  const world = await World.begin()
  t.after(() => world.end())
  for (const name of chosen.length ? chosen : ALL) {
    const { attacks } = await import(`./${name}.mjs`)
    await t.test(name, async t => {
      await attacks((title, work) => t.test(title, async () => {
        try {
          await work()
        } catch (error) {
          world.server.failed = true
          throw error
        }
      }), world)
      await t.test('the victim is as before', () => world.unharmed())
    })
  }
  // That an undo met a liar is said to who operates Corpus, and is no defect of it.
  const met = line => line.includes('an undo failed') && line.includes('does not speak as expected')
  await t.test('the server never broke', () => assert.deepEqual(world.server.errors().filter(line => !met(line)), []))
})
