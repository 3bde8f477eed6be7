import { redactText } from './log.ts'
import { migrate } from './migrate.ts'

/** `npm run migrate`: brings the database of DATABASE_URL to the newest schema. */
const url = process.env.DATABASE_URL
if (!url) fail('DATABASE_URL is missing: name the database to migrate')
try {
  const applied = await migrate(url)
  process.stdout.write(applied.length ? `applied ${applied.join(', ')}\n` : 'nothing to apply\n')
} catch (error) {
  fail(
    `DATABASE_URL cannot be migrated: ${redactText(error instanceof Error ? error.message : String(error))}`,
  )
}

function fail(line: string): never {
  process.stderr.write(`${line}\n`)
  process.exit(1)
}
