// The nodes' own records of what jobs asked of them, and what they prove.
import { onNode } from './lab.mjs'

/** The lines of all jobs on a node by job, in the order in which the node wrote them. */
export async function journals(node) {
  const text = await onNode(node, 'cd /var/lib/corpus/jobs 2>/dev/null && grep -H . *.log || true')
  const jobs = new Map()
  for (const line of text.split('\n').filter(Boolean)) {
    const [, job, json] = /^([0-9a-f-]{36})\.log:(.*)$/.exec(line)
    jobs.set(job, [...(jobs.get(job) ?? []), JSON.parse(json)])
  }
  return jobs
}

export const isRefused = line => line.result.error?.kind === 'fenced'
const mark = line => `${line.request} (run ${line.generation}, request ${line.number})`

/** A request of an earlier run, or an earlier one of the same run, that was taken after a later one. */
export function disorder(lines) {
  const taken = lines.filter(line => !isRefused(line))
  const later = (one, other) => one.generation > other.generation || (one.generation === other.generation && one.number >= other.number)
  return taken.slice(1).flatMap((line, index) => (later(taken[index], line) ? [`${mark(line)} after ${mark(taken[index])}`] : []))
}

/** What brings a node to all that is planned there: it may come as often as it likes, and only when something is due. */
const OF_THE_WHOLE = ['apply_node', 'put_certificates']

/** What was done, run by run; of what belongs to the job itself. */
export function runs(lines) {
  const done = lines.filter(line => line.result.answer && !OF_THE_WHOLE.includes(line.request))
  const generations = [...new Set(lines.map(line => line.generation))]
  return generations.map(generation => done.filter(line => line.generation === generation).map(line => line.request))
}

/** The most requests that one step makes of a node: a host key, then the keys of members. */
const OF_A_STEP = 2

/**
 * Whether the runs of a job are together one of the `whole` ones, done once: a run goes on after the
 * last step of the one before, or repeats that step, whose end its server may not have recorded.
 */
export function isOnce(parts, whole) {
  const repeats = (begun, part, count) => count <= begun.length && begun.slice(begun.length - count).join() === part.slice(0, count).join()
  const join = (begun, part) => [...Array(Math.min(OF_A_STEP, part.length) + 1).keys()]
    .filter(count => repeats(begun, part, count)).map(count => [...begun, ...part.slice(count)])
  const joined = parts.reduce((all, part) => all.flatMap(begun => join(begun, part)), [[]])
  return joined.some(one => whole.has(one.join()))
}
