import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Install } from './install.ts'
import { runningServer } from './lock.ts'
import { waitForExit } from './process.ts'

/** Makes the cluster anew; whatever lies in its folder goes. */
export async function initialise({ initdb, dataDir, runAs }: Install, password: string): Promise<void> {
  // What may lie here is of an interrupted initdb, or of a data folder that was removed and whose cluster was elsewhere.
  const orphan = runningServer(dataDir)
  if (orphan) {
    process.kill(orphan.pid, 'SIGQUIT')
    await waitForExit(orphan.pid, orphan.identity, 10_000)
  }
  rmSync(dataDir, { recursive: true, force: true })
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const passwordFile = join(tmpdir(), `agx-${randomBytes(8).toString('hex')}`)
  writeFileSync(passwordFile, password, { mode: 0o600 })
  try {
    if (runAs.uid !== undefined && runAs.gid !== undefined)
      for (const path of [dataDir, passwordFile]) chownSync(path, runAs.uid, runAs.gid)
    execFileSync(
      initdb,
      [
        ...[`--pgdata=${dataDir}`, '--username=postgres', '--auth=scram-sha-256', `--pwfile=${passwordFile}`],
        // Sorting that is the same everywhere, whatever the system's locale.
        ...['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
        ...[`--lc-ctype=${utf8Locale()}`, '--no-sync'],
      ],
      { ...runAs, cwd: '/', stdio: 'pipe' },
    )
  } finally {
    rmSync(passwordFile, { force: true })
  }
}

/** pg_trgm still asks the C library what is a letter, and with LC_CTYPE=C only ASCII is. */
function utf8Locale(): string {
  const known = spawnSync('locale', ['-a'], { encoding: 'utf8' }).stdout?.split('\n') ?? []
  return ['C.UTF-8', 'C.utf8', 'en_US.UTF-8', 'en_US.utf8'].find((name) => known.includes(name)) ?? 'C'
}
