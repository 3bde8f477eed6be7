import { linesOf } from '../load/account.ts'
import { chosenOf, optionsOf } from '../support/command.ts'
import { endure, type Outcome, type Subject, startSubject, stopSubject } from './endure.ts'
import { FAULTS } from './faults.ts'

/**
 * `npm run chaos [-- --only=worker-in-call,everything] [--patient] [--list]`: applies one fault after the other to a
 * stack under load, and accounts for every acknowledged request after each fault. Prints the counts, and finally a
 * table. Exits with 1 if anything was lost, doubled or stuck, or if a limit after a kill was exceeded; `--patient`, for a
 * busy machine, only marks those.
 */
const USAGE = `npm run chaos [-- --only=NAME,…] [--patient] [--list]

  --only=NAME,…  strikes with these faults only
  --patient      on a busy machine: late recovery is marked, and does not fail
  --list         prints the faults`
const { values } = optionsOf(USAGE, {
  options: { only: { type: 'string' }, patient: { type: 'boolean' }, list: { type: 'boolean' } },
})
const say = (line: string) => void process.stdout.write(`${line}\n`)

const DURATIONS = { beforeMs: 6_000, afterMs: 8_000 }
/** The limits after a kill. */
const NEXT_MS = 5_000
const HELD_MS = 15_000
const HEAD = 'fault                        result  accepted  next run  held runs  held deliveries'

if (values.list) {
  for (const { name, title } of FAULTS) say(`${name.padEnd(30)} ${title}`)
  process.exit()
}
const chosen = chosenOf(FAULTS, values.only)
const rows: string[] = []
let failed = false
let subject: Subject | undefined
for (const [n, fault] of chosen.entries()) {
  say(`\n${n + 1} of ${chosen.length}: ${fault.name}: ${fault.title}`)
  const missing = fault.missing?.()
  if (missing !== undefined) {
    say(`  skipped: ${missing}`)
    rows.push(`${fault.name.padEnd(28)} skipped: ${missing}`)
    continue
  }
  try {
    if (fault.system && subject) {
      await stopSubject(subject)
      subject = undefined
    }
    subject ??= await startSubject(fault.system)
    const outcome = await endure(fault, subject, DURATIONS, say)
    for (const line of linesOf(outcome.accounted)) say(line)
    rows.push(rowOf(outcome))
    if (isLate(outcome) && !values.patient) failed = true
    if (outcome.complete && !fault.system) continue
    if (!outcome.complete) failed = true
  } catch (error) {
    say(`  WRONG  ${error instanceof Error ? error.stack : error}`)
    rows.push(`${fault.name.padEnd(28)} WRONG, not measured`)
    failed = true
  }
  // The next fault must not be affected by this one.
  if (subject) await stopSubject(subject)
  subject = undefined
}
if (subject) await stopSubject(subject)
say(`\n${HEAD}`)
for (const row of rows) say(row)
say(`
next run: from the end of the fault to the end of a run that was requested then; held: to the end of the last one from
before the fault. !: after a kill, more than ${NEXT_MS / 1_000} s for the next run, or ${HELD_MS / 1_000} s for those held.`)
process.exit(failed ? 1 : 0)

/** Whether a limit after a kill was exceeded. */
function isLate({ fault, nextMs, heldRunsMs, heldDeliveriesMs }: Outcome): boolean {
  return fault.kind === 'kill' && (nextMs > NEXT_MS || heldRunsMs > HELD_MS || heldDeliveriesMs > HELD_MS)
}

function rowOf({ fault, complete, acknowledged, nextMs, heldRunsMs, heldDeliveriesMs }: Outcome): string {
  const seconds = (ms: number, width: number, limit: number) => {
    const mark = fault.kind === 'kill' && ms > limit ? '!' : ' '
    return `${(ms / 1_000).toFixed(1)} s${mark}`.padStart(width)
  }
  return [
    fault.name.padEnd(28),
    complete ? 'ok     ' : 'WRONG  ',
    String(acknowledged).padStart(7),
    seconds(nextMs, 10, NEXT_MS),
    seconds(heldRunsMs, 10, HELD_MS),
    seconds(heldDeliveriesMs, 15, HELD_MS),
  ].join(' ')
}
