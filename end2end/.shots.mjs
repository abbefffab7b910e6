import { chromium } from 'playwright-core'
import * as look from './look.mjs'
const all = { projects: '/projects', project: '/projects/carto-api', project3: '/projects/new-one?3', env: '/projects/carto-api/staging', envwrong: '/projects/carto-api/staging?wrong', restore: '/projects/carto-api/staging/restore/0199d3c0-0000-7000-8000-0000000000d9', rmenv: '/projects/carto-api/prod/remove', drill: '/projects/carto-api/staging/drill', deployments: '/deployments', depempty: '/deployments?empty', dep: '/projects/carto-api/deployments/218', deplive: '/projects/carto-api/deployments/218?live', deprun: '/projects/carto-api/deployments/218?running', depwait: '/projects/carto-api/deployments/218?waiting', depbroken: '/projects/carto-api/deployments/218?broken', new: '/projects/new', rm: '/projects/carto-api/remove', projempty: '/projects?empty', overview: '/', guest: '/guests/0199d3c0-0000-7000-8000-000000000014' }
const only = process.argv[2]?.split(',')
const widths = (process.argv[3] ?? '1440,390').split(',').map(Number)
const schemes = (process.argv[4] ?? 'light,dark').split(',')
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] })
for (const width of widths) for (const colorScheme of schemes) {
  const context = await browser.newContext({ baseURL: 'http://127.0.0.1:8090', viewport: { width, height: 900 }, colorScheme })
  const page = await context.newPage()
  for (const [name, path] of Object.entries(all)) {
    if (only && !only.includes(name)) continue
    await page.goto(path)
    const found = [...await look.overflow(page), ...await look.violations(page)]
    if (colorScheme === 'light') found.push(...await look.unreachable(page))
    await page.screenshot({ path: `/tmp/shots/${name}-${width}-${colorScheme}.png`, fullPage: true })
    for (const one of found) console.log(name, width, colorScheme, one)
  }
  await context.close()
}
await browser.close()
