import type { WaitFor } from '../nodes/wait-for.ts'
import { redactText } from '../shared/redact.ts'
import { describeLoop, type Outcome, type Waits } from './execute.ts'

/** One line of what a tested node did. `time` is ISO 8601. */
export interface LogLine {
  time: string
  message: string
}

const MAX_LINES = 100
const MAX_LENGTH = 500

/** The log of a tested node; secrets of known services are redacted. */
export class NodeLog {
  readonly lines: LogLine[] = []

  /** Keeps the first 100 lines, and 500 characters of each. */
  add(message: string): void {
    if (this.lines.length === MAX_LINES) return
    this.lines.push({
      time: new Date().toISOString(),
      message: redactText(message).slice(0, MAX_LENGTH),
    })
  }

  /** Adds the outcome. */
  ended(outcome: Outcome): void {
    if (outcome.status === 'failed') this.add(`failed: ${outcome.error.code}: ${outcome.error.message}`)
    else if (outcome.status === 'ended') this.add(`would end the run as ${outcome.end.status}`)
    else if (outcome.status === 'waiting')
      this.add(`would wait ${describeWait(outcome.waits)}, and leave by ${outcome.handle}`)
    else if (outcome.status === 'looping') this.add(`would ${describeLoop(outcome.loop)}`)
    else this.add(`left by ${outcome.handle}`)
  }
}

function describeWait(waits: Waits): string {
  if ('until' in waits) return `until ${waits.until.toISOString()}`
  if ('child_run_id' in waits) return `for the end of run ${waits.child_run_id}`
  const { expires_at } = waits.for
  return `for ${describeAnswer(waits.for)}, ${expires_at ? `until ${expires_at.toISOString()} at most` : 'without limit'}`
}

function describeAnswer(wait: WaitFor): string {
  if (wait.type === 'signal') return `the signal ${wait.name}`
  if (wait.type === 'decision')
    return `a decision${wait.assignees.length > 0 ? ` of ${wait.assignees.join(', ')}` : ''}`
  const { events, record_id, filter, since } = wait
  return [
    `the event ${events.join(' or ')}`,
    ...(record_id ? [`about record ${record_id}`] : []),
    ...(filter ? [`for which ${filter} holds`] : []),
    ...(since === 'run_start' ? ['since the start of the run'] : []),
  ].join(' ')
}
