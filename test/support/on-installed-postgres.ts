/**
 * An installed PostgreSQL instead of the embedded one, for the tests:
 *
 *   node --import tsx test/support/on-installed-postgres.ts npx mocha test/journey.test.ts
 *
 * Runs the command with TEST_DATABASE_URL set, then stops the server and removes its data; exits with the command's code.
 * TEST_POSTGRES_PROGRAMS names the folder with `initdb` and `postgres`; default: the newest of /usr/lib/postgresql.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { installedPostgres, startInstalledPostgres } from './installed-postgres.ts'

const [command, ...args] = process.argv.slice(2)
const programs = process.env.TEST_POSTGRES_PROGRAMS ?? installedPostgres()
if (!command || !programs) {
  process.stderr.write(
    `${command ? 'no PostgreSQL is installed: set TEST_POSTGRES_PROGRAMS' : 'give the command that runs the tests'}\n`,
  )
  process.exit(1)
}
const postgres = await startInstalledPostgres(programs)
process.stderr.write(`PostgreSQL of ${programs}\n`)
const child = spawn(command, args, {
  stdio: 'inherit',
  env: { ...process.env, TEST_DATABASE_URL: postgres.url },
})
// Ctrl-C reaches the command too; the server is stopped when it has ended.
process.on('SIGINT', () => {})
const [code] = (await once(child, 'exit')) as [number | null]
await postgres.stop()
process.exit(code ?? 1)
