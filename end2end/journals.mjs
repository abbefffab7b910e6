// The nodes' own records of what jobs asked of them, and what they prove.
import { onNode } from './lab.mjs'

/** The lines of all jobs on a node, in the order in which the node wrote them. */
export async function journals(node) {
  const text = await onNode(node, 'cd /var/lib/corpus/jobs 2>/dev/null && grep -H . *.log || true')
  const jobs = new Map()
  for (const line of text.split('\n').filter(Boolean)) {
    const [, job, json] = /^([0-9a-f-]{36})\.log:(.*)$/.exec(line)
    jobs.set(job, [...(jobs.get(job) ?? []), JSON.parse(json)])
  }
  return jobs
}

const refused = line => line.result.error?.kind === 'fenced'

/**
 * What in a job's record should not be: a request of an earlier run after one of a later run, one
 * that was taken twice, or one that had ended well and been followed by others asked again by a
 * later run.
 */
export function faultsOf(job, lines) {
  const faults = []
  const taken = lines.filter(line => !refused(line))
  const mark = line => `${line.request} (run ${line.generation}, request ${line.number})`
  taken.forEach((line, index) => {
    const before = taken.slice(0, index)
    const last = before.at(-1)
    if (last && last.generation > line.generation) faults.push(`${job}: ${mark(line)} after ${mark(last)}`)
    if (last && last.generation === line.generation && last.number >= line.number) faults.push(`${job}: ${mark(line)} after ${mark(last)}`)
    const same = before.findLastIndex(earlier => earlier.request === line.request && earlier.result.answer)
    if (same < 0) return
    // A run that died may have had its last request done and not recorded: only that is asked again.
    const lastOfItsRun = taken[same + 1].generation > taken[same].generation
    if (!lastOfItsRun) faults.push(`${job}: ${mark(line)} though ${mark(taken[same])} was done`)
  })
  return faults
}

/** How many requests were refused because a later run had begun. */
export const fencedIn = lines => lines.filter(refused).length
