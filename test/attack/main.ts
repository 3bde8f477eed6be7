import { chosenOf, optionsOf } from '../support/command.ts'
import { FAMILIES } from './families/index.ts'
import { Tally } from './family.ts'
import { startGround } from './ground.ts'

/**
 * `npm run attack [-- --only=tenants,egress] [--list]`: attacks a started stack in every way of the families. Prints each
 * attempt that succeeded, and at the end a table. Exits with 1 if there was one. The routes come from the route tables.
 */
const USAGE = `npm run attack [-- --only=NAME,…] [--list]

  --only=NAME,…  attacks with these families only
  --list         prints the families`
const { values } = optionsOf(USAGE, { options: { only: { type: 'string' }, list: { type: 'boolean' } } })
const say = (line: string) => void process.stdout.write(`${line}\n`)

if (values.list) {
  for (const { name, title } of FAMILIES) say(`${name.padEnd(14)} ${title}`)
  process.exit()
}
const chosen = chosenOf(FAMILIES, values.only)
say('starting a stack …')
const ground = await startGround()
const rows: string[] = []
let failed = false
try {
  for (const family of chosen) {
    say(`\n${family.name}: ${family.title}`)
    const tally = new Tally()
    const started = Date.now()
    await family
      .run(ground, tally)
      .catch((error: Error) => tally.attempt(false, `it could not be carried out: ${error.stack}`))
    for (const breach of tally.breaches.slice(0, 20)) say(`  SUCCEEDED  ${breach}`)
    if (tally.breaches.length > 20) say(`  … and ${tally.breaches.length - 20} more`)
    failed ||= tally.breaches.length > 0
    const seconds = Math.round((Date.now() - started) / 1_000)
    rows.push(
      `${family.name.padEnd(14)} ${String(tally.attempts).padStart(8)} ${String(tally.breaches.length).padStart(10)} ${String(seconds).padStart(6)} s`,
    )
  }
} finally {
  await ground.stop()
}
say(`\n${'attack'.padEnd(14)} ${'attempts'.padStart(8)} ${'succeeded'.padStart(10)} ${'took'.padStart(8)}`)
for (const row of rows) say(row)
process.exit(failed ? 1 : 0)
