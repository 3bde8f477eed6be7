import { execFile } from 'node:child_process'

/** Runs `npm run backup` with the programs of an installed PostgreSQL. @param env the database. */
export const runBackup = (programs: string, env: Record<string, string>, ...args: string[]) =>
  new Promise<{ code: number; printed: string }>((resolve) => {
    execFile(
      process.execPath,
      ['worker/run.mjs', 'worker/commands/backup.ts', ...args],
      { env: { ...process.env, PATH: `${programs}:${process.env.PATH}`, ...env } },
      (error, out, errors) => resolve({ code: Number(error?.code ?? 0), printed: out + errors }),
    )
  })
