// What takes the place of a function of the C library in a process: a file of C beside this one, compiled once.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where `name.c` is, compiled, as LD_PRELOAD takes it. */
export function preload(name) {
  const place = fileURLToPath(new URL(`../target/corpus/${name}.so`, import.meta.url))
  if (!existsSync(place)) {
    mkdirSync(path.dirname(place), { recursive: true })
    const made = `${place}.${process.pid}`
    execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', made, fileURLToPath(new URL(`${name}.c`, import.meta.url))])
    renameSync(made, place)
  }
  return place
}
