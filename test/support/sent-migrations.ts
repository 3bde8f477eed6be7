import { createHash } from 'node:crypto'
import knex from 'knex'
import type { migrations } from '../../db/migrations/index.ts'
import { createTestDatabase } from './database.ts'

/** The SQL that each migration sends, in order, to an empty database. */
export async function sentBy(all: typeof migrations): Promise<Map<string, string>> {
  const db = await createTestDatabase()
  await db.asOwner((client) => client.query('drop schema public cascade; create schema public'))
  const owner = knex({ client: 'pg', connection: db.url, pool: { min: 0, max: 1 } })
  let sent: string[] = []
  owner.on('query', ({ sql }: { sql: string }) => sent.push(sql))
  const found = new Map<string, string>()
  try {
    for (const [name, { up }] of all) {
      sent = []
      await up(owner)
      found.set(name, sent.join(';\n'))
    }
    return found
  } finally {
    await owner.destroy()
    await db.drop()
  }
}

/** The SHA-256 of what each migration sends, by its name. */
export const hashesOf = (sent: Map<string, string>): Record<string, string> =>
  Object.fromEntries([...sent].map(([name, sql]) => [name, createHash('sha256').update(sql).digest('hex')]))
