// Mail from guests: off in dev until it is switched on, the relay's answer is the guest's, counted, and no more than may be.
// By pages without a word of JSON, and once by the command line.
import assert from 'node:assert/strict'
import net from 'node:net'
import path from 'node:path'
import test from 'node:test'
import { Visitor, launch } from '../browser.mjs'
import * as lab from '../lab.mjs'
import * as pages from '../pages.mjs'
import { until } from '../process.mjs'
import { Server } from '../server.mjs'
import { story } from '../steps.mjs'

const NODE = 'node1'
const [web, batch] = ['web.mail.test', 'batch.mail.test']
const MESSAGES = 3

/** A relay on this machine, as nodes reach it: it keeps what it takes, and knows nobody called `nobody`. */
class MailRelay {
  taken = []

  static async open() {
    const relay = new MailRelay()
    relay.server = net.createServer(socket => relay.speak(socket))
    await new Promise((resolve, reject) => relay.server.once('error', reject).listen(0, lab.lab.env.CORPUS_LAB_GATEWAY, resolve))
    relay.address = `${lab.lab.env.CORPUS_LAB_GATEWAY}:${relay.server.address().port}`
    return relay
  }

  speak(socket) {
    let [text, message] = ['', null]
    const answer = line => socket.write(`${line}\r\n`)
    answer('220 relay')
    socket.setEncoding('latin1').on('error', () => {}).on('data', part => {
      text += part
      for (let end = text.indexOf('\r\n'); end >= 0; end = text.indexOf('\r\n')) {
        const line = text.slice(0, end)
        text = text.slice(end + 2)
        if (message) {
          if (line !== '.') message.push(line)
          else {
            this.taken.push(message.join('\n'))
            message = null
            answer('250 2.0.0 taken')
          }
        } else if (line === 'DATA') {
          message = []
          answer('354 go on')
        } else if (line.includes('<nobody@')) answer('550 5.1.1 nobody of that name')
        else if (line === 'QUIT') socket.end('221 bye\r\n')
        else answer('250 2.0.0 ok')
      }
    })
  }

  close() {
    return new Promise(resolve => this.server.close(resolve))
  }
}

const sending = to => `python3 -c "import smtplib
try:
 s=smtplib.SMTP('10.5.0.1',25,timeout=10)
 s.sendmail('me@${web}',['${to}'],'Subject: an order\\r\\n\\r\\nthank you\\r\\n')
 print('sent')
except smtplib.SMTPRecipientsRefused as e: print(e.recipients)
except smtplib.SMTPResponseException as e: print(e.smtp_code, e.smtp_error.decode())
except OSError as e: print(e)"`

test('guests send mail by their node, when it is on', async t => {
  await lab.cleanLab()
  const relay = await MailRelay.open()
  const server = await Server.start('guest-mail', { guest_mail: { relay: relay.address, messages_per_hour: MESSAGES } })
  const browser = await launch()
  const visitors = []
  t.after(async () => {
    await browser.close()
    await server.stop()
    await relay.close()
  })
  const step = story(t, visitors, server)
  const guests = {}
  let alice, bob, carol, key

  const enters = async login => {
    const visitor = await Visitor.open(browser, server)
    visitors.push(visitor)
    await visitor.enter(login, lab.lab.password)
    return visitor
  }
  const sends = async (guest, to = 'you@example.com') => (await lab.pasted(guests[guest].ssh, key.path, sending(to))).trim()
  const switches = async (visitor, place, to) => {
    await visitor.page.goto(place)
    const card = visitor.page.locator('#mail')
    await card.getByRole('combobox').selectOption(to)
    await pages.sends(visitor, card.getByRole('button'))
  }
  const answers = (guest, expected) => until(`mail of ${guest} to be ${expected}`, async () => expected.test(await sends(guest)), { limit: 60_000, pause: 1000 })
  const shown = (visitor, place, text) => until(`${text} at ${place}`, async () => text.test((await visitor.read(place)).html), { limit: 60_000, pause: 1000 })
  const environment = '/projects/atlas/dev/mail'

  await step('in dev it is off, and the sender is told where it is switched on', async () => {
    alice = await enters('alice')
    await pages.readyNode(alice, NODE)
    bob = await enters('bob')
    carol = await enters('carol')
    key = await lab.makeKey(path.join(server.folder, 'bob'))
    await pages.addKey(bob, key.line)
    for (const name of [web, batch]) {
      const place = await pages.requestGuest(bob, { name, project: 'atlas', environment: 'dev', size: 'xxsmall' })
      await pages.untilStatus(bob, place, 'Running')
      const { html } = await bob.read(place)
      guests[name] = { place, ssh: pages.valueIn(html, 'ssh') }
    }
    const refused = await sends(web)
    assert.match(refused, /^550 .*environment/)
    assert.ok(!refused.includes(lab.lab.env.CORPUS_LAB_GATEWAY), 'it is told where the relay is')
    assert.match((await bob.read(`${guests[web].place}/mail`)).html, /Off/)
  })

  await step('a maintainer switches it on for the environment, and off for one guest', async () => {
    await carol.page.goto(environment)
    assert.equal(await carol.page.locator('#mail').count(), 0, 'a developer is offered the switch')
    await switches(bob, environment, 'on')
    await answers(web, /^sent$/)
    assert.match(relay.taken.at(-1), new RegExp(`^Received: from .* \\(${web.replaceAll('.', '\\.')} \\[10\\.5\\.`))
    await switches(bob, `${guests[batch].place}/mail`, 'off')
    await answers(batch, /^550/)
    await bob.page.goto(`${guests[batch].place}/mail`)
    await bob.screenshot('guest-mail-off')
  })

  await step('the relay\'s answer is the guest\'s, and an hour has so many', async () => {
    assert.match(await sends(web, 'nobody@example.com'), /550.*nobody of that name/)
    const said = []
    // An hour may end meanwhile.
    for (let count = 0; count < 2 * MESSAGES; count += 1) said.push(await sends(web))
    assert.match(said.at(-1), /^452/, said.join('\n'))
  })

  await step('what was sent is counted, by guest and hour', async () => {
    const place = `${guests[web].place}/mail`
    await shown(bob, place, /data-label="Over the limit" class="num">[1-9]/)
    await shown(bob, place, /data-label="Refused" class="num">[1-9]/)
    await bob.page.goto(place)
    await bob.screenshot('guest-mail')
    await shown(bob, environment, new RegExp(`${web.replaceAll('.', '\\.')}[^]*data-label="Sent" class="num">[1-9]`))
    await bob.page.goto(environment)
    await bob.screenshot('environment-mail')
  })

  await step('the relay is away, and no message is lost', async () => {
    await relay.close()
    await switches(bob, `${guests[batch].place}/mail`, 'environment')
    await answers(batch, /^451/)
  })
})
