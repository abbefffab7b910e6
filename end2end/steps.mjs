// Steps of a test, reported one by one. One that fails leaves a picture of every open page, and
// ends the test where the later ones build on it.

/**
 * `const step = story(t, visitors, server)`, then `await step('title', async () => …)`. `visitors`
 * is an array that may still grow. With `{ goOn: true }` a failed step does not end the test.
 */
export function story(t, visitors, server, { goOn = false } = {}) {
  return async (title, work) => {
    let failure
    await t.test(title, async () => {
      try {
        await work()
        for (const visitor of visitors) visitor.check()
      } catch (error) {
        failure = error
        server.failed = true
        for (const { faults, messages } of visitors) {
          for (const said of [...faults, ...messages.map(({ text, at }) => `console at ${at}: ${text}`)]) console.log(`# the browser: ${said}`)
        }
        await pictures(title, visitors)
        throw error
      }
    })
    if (failure && !goOn) throw new Error(`the story ended at: ${title}`, { cause: failure })
  }
}

async function pictures(title, visitors) {
  const name = title.replace(/[^a-z0-9]+/gi, '-').toLowerCase()
  for (const [index, visitor] of visitors.entries()) {
    await visitor.screenshot(`failed-${name}-${index}`).catch(() => {})
  }
}
