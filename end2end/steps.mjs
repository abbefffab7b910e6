// Steps of a story: reported one by one, the first that fails ends the story and leaves a
// picture of every open page.
/**
 * `const step = story(t, visitors, server)`, then `await step('title', async () => …)`. `visitors`
 * is an array that may still grow.
 */
export function story(t, visitors, server) {
  return async (title, work) => {
    let failure
    await t.test(title, async () => {
      try {
        await work()
        for (const visitor of visitors) visitor.check()
      } catch (error) {
        failure = error
        server.failed = true
        await pictures(title, visitors)
        throw error
      }
    })
    if (failure) throw new Error(`the story ended at: ${title}`, { cause: failure })
  }
}

async function pictures(title, visitors) {
  const name = title.replace(/[^a-z0-9]+/gi, '-').toLowerCase()
  for (const [index, visitor] of visitors.entries()) {
    await visitor.screenshot(`failed-${name}-${index}`).catch(() => {})
  }
}
