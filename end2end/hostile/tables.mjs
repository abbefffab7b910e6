// The tables of scripts/measure-tenants, from the JSON that measure.mjs wrote.
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'

const folder = process.argv[2]
const read = name => {
  const file = path.join(folder, `${name}.json`)
  return existsSync(file) && readFileSync(file, 'utf8').trim() ? JSON.parse(readFileSync(file, 'utf8')) : null
}
const median = numbers => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]
const turns = name => [1, 2].map(turn => read(`${name}-${turn}`)).filter(Boolean)
const seconds = (all, what) => all.length ? `${(median(all.flatMap(one => one[what])) / 1000).toFixed(2)} s` : 'not measured'
const count = turns('now').flatMap(one => one.form).length

const logins = Object.entries({ job: 'the job alone', form: 'by the form, without a browser', browser: 'through the browser' })
  .map(([what, words]) => `| ${words} | ${seconds(turns('before'), what)} | ${seconds(turns('now'), what)} |`)
const ms = (reading, side, what, part) => reading ? `${reading[side][what][part].toFixed(0)} ms` : 'not measured'
const failed = (reading, what) => reading && reading.beside[what].failed ? `, ${reading.beside[what].failed} of ${reading.beside[what].answers} not answered` : ''
const rows = ['before', 'now'].map(name => [name, read(`${name}-neighbour`)]).filter(([, reading]) => reading).flatMap(([name, reading]) =>
  Object.entries({ page: "a neighbour's page", controller: "the controller's page" }).map(([what, words]) =>
    `| ${words}, ${name} | ${ms(reading, 'without', what, 'p95')} | ${ms(reading, 'beside', what, 'p95')}${failed(reading, what)} | ${(reading.beside[what].p95 / reading.without[what].p95).toFixed(1)} |`))

console.log(`Measured on ${new Date().toISOString().slice(0, 10)}, on a machine with two processors that also runs the lab.

Request of a guest to its first SSH login, medians of ${count} guests each:

| | before | now |
|---|---|---|
${logins.join('\n')}

The 95th percentile of answers, alone and beside a guest of 1 GB that forks, fills memory, disk, network and proxy and
answers the controller with rubbish, all at once:

| | alone | beside it | times |
|---|---|---|---|
${rows.join('\n')}`)
