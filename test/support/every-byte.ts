import type { Client } from '@temporalio/client'
import type { TestDatabase } from './database.ts'
import { otherTables, tenantTables } from './every-table.ts'
import { historyOf } from './worker.ts'

/** Every row of every table and view, as text, by table. `except`: columns, as `table.column`. */
export async function everyRow(db: TestDatabase, except: string[] = []): Promise<Map<string, string>> {
  return db.asOwner(async (client) => {
    const names = [...(await tenantTables(client)).map(({ name }) => name), ...(await otherTables(client))]
    const found = new Map<string, string>()
    for (const name of names) {
      const dropped = except
        .filter((column) => column.startsWith(`${name}.`))
        .map((column) => column.split('.')[1])
      const { rows } = await client.query(`select to_jsonb(t) - $1::text[] as row from ${name} t`, [dropped])
      found.set(name, JSON.stringify(rows))
    }
    return found
  })
}

/** A workflow's history as text, with its payloads decoded. */
export async function historyText(client: Client, workflowId: string): Promise<string> {
  const text = JSON.stringify(await historyOf(client, workflowId))
  const payloads = [...text.matchAll(/"data":"([\w+/=]+)"/g)].map(([, data]) =>
    Buffer.from(data!, 'base64').toString(),
  )
  return [text, ...payloads].join('\n')
}
