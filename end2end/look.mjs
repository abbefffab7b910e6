// How a page looks and can be used: no overflow, nothing for axe to report, everything
// reachable by the keyboard with its focus visible.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What axe-core reports, a line each. */
export async function violations(page) {
  // By the debugger, which the page's Content-Security-Policy does not concern.
  await page.evaluate(axe)
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }))
  return found.violations.flatMap(({ id, help, nodes }) => nodes.map(node => `${id} (${help}): ${node.target.join(' ')} ${node.html.slice(0, 160)}`))
}

/** The elements that are wider than the page, if the page can be scrolled sideways. */
export const overflow = page => page.evaluate(() => {
  const root = document.documentElement
  if (root.scrollWidth <= root.clientWidth) return []
  const wide = [...document.querySelectorAll('body *')].filter(element => element.getBoundingClientRect().right > root.clientWidth + 0.5)
  return [`${root.scrollWidth} > ${root.clientWidth}`, ...wide.slice(-5).map(element => element.outerHTML.slice(0, 120))]
})

/** The page that is open, on a phone and on a desk, dark and light: a picture of each, nothing beyond the edge, and
 * nothing that axe reports. It is left as it was found: on a desk, and light. */
export async function judged(visitor, name) {
  const { page } = visitor
  const faults = []
  for (const width of [390, 1440]) {
    for (const colorScheme of ['dark', 'light']) {
      await page.setViewportSize({ width, height: 900 })
      await page.emulateMedia({ colorScheme })
      const found = [...await overflow(page), ...await violations(page)]
      if (await isDark(page) !== (colorScheme === 'dark')) found.push('of the other colours')
      faults.push(...found.map(fault => `${width} ${colorScheme}: ${fault}`))
      await visitor.screenshot(`look-${name}-${width}-${colorScheme}`)
    }
  }
  assert.deepEqual(faults, [], `${name} at ${page.url()}`)
}

/** Whether the page is dark, whatever notation its colours are in. */
export const isDark = page => page.evaluate(() => {
  const painted = [document.body, document.documentElement].map(element => getComputedStyle(element).backgroundColor)
  const context = document.createElement('canvas').getContext('2d')
  context.fillStyle = painted.find(color => color !== 'rgba(0, 0, 0, 0)') ?? 'white'
  context.fillRect(0, 0, 1, 1)
  const [red, green, blue] = context.getImageData(0, 0, 1, 1).data
  return red + green + blue < 3 * 128
})

/** The controls that Tab does not reach, or on which the focus can't be seen. */
export async function unreachable(page) {
  const count = await page.evaluate(mark)
  const seen = new Set()
  const invisible = []
  // The document's own start and end each take a press.
  for (let presses = 0; presses < count + 5 && seen.size < count; presses += 1) {
    await page.keyboard.press('Tab')
    const focus = await page.evaluate(focused)
    if (!focus) continue
    if (!seen.has(focus.index) && !focus.visible) invisible.push(`focus not visible: ${focus.html}`)
    seen.add(focus.index)
  }
  const missed = await page.evaluate(found => [...document.querySelectorAll('[data-tab]')]
    .filter(element => !found.includes(Number(element.dataset.tab))).map(element => `not reached: ${element.outerHTML.slice(0, 120)}`), [...seen])
  return [...missed, ...invisible]
}

/** Numbers what the keyboard should reach, in the page. */
function mark() {
  const controls = 'a[href], button:not(:disabled), input:not([type=hidden]):not(:disabled), select, textarea, summary, [tabindex="0"]'
  const shown = element => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0
  // Tab reaches one button of a group of radio buttons, the chosen one or the first; arrows reach the others.
  const stops = element => {
    if (element.type !== 'radio') return true
    const group = [...document.getElementsByName(element.name)].filter(other => other.form === element.form)
    return element === (group.find(other => other.checked) ?? group[0])
  }
  const all = [...document.querySelectorAll(controls)].filter(shown).filter(element => element.tabIndex >= 0 && stops(element))
  all.forEach((element, index) => (element.dataset.tab = index))
  document.activeElement?.blur()
  return all.length
}

/** What has the focus, and whether one can see that, in the page. */
function focused() {
  const element = document.activeElement
  if (!element?.dataset.tab) return null
  const style = getComputedStyle(element)
  const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0
  return { index: Number(element.dataset.tab), visible: outlined || style.boxShadow !== 'none', html: element.outerHTML.slice(0, 120) }
}
