// Programs that tests run: always an argv with a time limit, never a shell on this side.
import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'

/** Runs a program; resolves with its standard output, rejects with what it wrote when it fails. `as`: `env`, `cwd`, `uid`, `gid`. */
export function run(program, args, { input, timeout = 60_000, ...as } = {}) {
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, { ...as, timeout, maxBuffer: 16 << 20 }, (error, stdout, stderr) => {
      if (!error) return resolve(stdout)
      const why = error.killed ? `no end after ${timeout} ms` : `exit ${error.code}`
      reject(new Error(`${program} ${args.join(' ')}: ${why}\n${stdout}${stderr}`))
    })
    child.stdin.on('error', () => {})
    child.stdin.end(input ?? '')
  })
}

/** Whether a program succeeds. */
export const succeeds = (program, args, options) => run(program, args, options).then(() => true, () => false)

/** How long something may take that nobody measures: a machine that does other work beside is several times slower. */
export const PATIENCE = 60_000

/** Where nobody measures, a wait rests this many times as long as a check takes: most of the machine is for what is waited for. */
const REST = 3

/**
 * Polls until `check` gives something true, and returns that. Errors of `check` count as "not yet";
 * that of the last one is told when the time is over. Checks are `pause` milliseconds apart, by default more on a busy
 * machine.
 */
export async function until(what, check, { limit = PATIENCE, pause } = {}) {
  const end = performance.now() + limit
  let last
  for (;;) {
    const began = performance.now()
    last = undefined
    try {
      const found = await check()
      if (found) return found
    } catch (error) {
      last = error
    }
    if (performance.now() > end) throw new Error(`waited ${limit} ms for ${what}${last ? `: ${last.message ?? last}` : ''}`, { cause: last })
    await sleep(pause ?? Math.min(1_000, Math.max(50, REST * (performance.now() - began))))
  }
}

/** The milliseconds that `work` takes, and what it gives. */
export async function timed(work) {
  const begin = performance.now()
  const result = await work()
  return [performance.now() - begin, result]
}
