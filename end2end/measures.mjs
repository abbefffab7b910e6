// The table of measures at the end of a test, on the terminal and for scripts/test to print last.
import { appendFileSync } from 'node:fs'

const cell = value => (value === undefined ? '' : String(value))

/** Seconds with as many digits as the eye needs. */
export const seconds = ms => `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`

/** Prints rows of `{ what, corpus, bare, note }`. */
export function report(title, rows) {
  const lines = [['', 'Corpus', 'bare tools', ''], ...rows.map(row => [row.what, row.corpus, row.bare, row.note])]
  const widths = [0, 1, 2].map(column => Math.max(...lines.map(line => cell(line[column]).length)))
  const text = lines.map(([what, corpus, bare, note]) =>
    `  ${cell(what).padEnd(widths[0])}  ${cell(corpus).padStart(widths[1])}  ${cell(bare).padStart(widths[2])}  ${cell(note)}`.trimEnd())
  const all = [title, ...text, ''].join('\n')
  console.log(all)
  if (process.env.CORPUS_MEASURES) appendFileSync(process.env.CORPUS_MEASURES, all)
}

/** Prints rows of `[what, value]`. */
export function note(title, rows) {
  const width = Math.max(...rows.map(([what]) => what.length))
  const all = [title, ...rows.map(([what, value]) => `  ${what.padEnd(width)}  ${value}`), ''].join('\n')
  console.log(all)
  if (process.env.CORPUS_MEASURES) appendFileSync(process.env.CORPUS_MEASURES, all)
}
