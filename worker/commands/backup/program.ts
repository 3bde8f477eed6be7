import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { redactText } from '../../../workflows/shared/redact.ts'

/** A program of PostgreSQL that is missing or has failed. The message is for the operator, and has no password. */
export class ProgramError extends Error {}

/** How much of what a program prints is kept, in characters from its end. */
const KEPT = 4_000

/** Runs a program of PostgreSQL on the database of `url`, whose password is not in the arguments. Throws ProgramError. */
export async function runProgram(name: 'pg_dump' | 'pg_restore', args: string[], url: string): Promise<void> {
  const { address, password } = splitPassword(url)
  const child = spawn(name, [...args, `--dbname=${address}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...(password !== undefined && { PGPASSWORD: password }) },
  })
  let printed = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    printed = (printed + text).slice(-KEPT)
  })
  const ended = once(child, 'close').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT')
      throw new ProgramError(
        `${name} was not found: install PostgreSQL's client programs, of at least the server's version`,
      )
    throw error
  })
  const [code] = await ended
  if (code !== 0) throw new ProgramError(`${name} has failed: ${redactText(printed.trim())}`)
}

/** Arguments of a process are seen by all users of a machine; its environment is not. */
function splitPassword(text: string) {
  const url = new URL(text)
  const password = url.password === '' ? undefined : decodeURIComponent(url.password)
  url.password = ''
  return { address: url.href, password }
}
