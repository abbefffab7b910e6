// A database for tests that share one among several servers, in the PostgreSQL of DATABASE_URL.
import { run } from './process.mjs'

export class Database {
  static async make(name) {
    const { DATABASE_URL: given } = process.env
    if (!given) throw new Error('DATABASE_URL names no PostgreSQL; scripts/test starts one')
    const database = new Database()
    database.name = `${name}_${process.pid}`
    database.given = given
    const url = new URL(given)
    url.pathname = `/${database.name}`
    database.url = url.href
    await ask(given, `create database ${database.name}`)
    return database
  }

  /** One that is there already. */
  static at(url) {
    return Object.assign(new Database(), { url })
  }

  /** The rows of a statement, arrays of texts. */
  rows(statement) {
    return ask(this.url, statement)
  }

  remove() {
    return ask(this.given, `drop database ${this.name} with (force)`)
  }
}

async function ask(url, statement) {
  const text = await run('psql', ['-X', '-q', '-At', '-F', '\t', '-v', 'ON_ERROR_STOP=1', url, '-c', statement])
  return text.split('\n').filter(Boolean).map(line => line.split('\t'))
}
