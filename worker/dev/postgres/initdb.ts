import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Install } from './install.ts'
import { runningServer } from './lock.ts'
import { waitForExit } from './process.ts'

/** Creates a new cluster; deletes the contents of its folder. */
export async function initialise({ initdb, dataDir, runAs }: Install, password: string): Promise<void> {
  // The folder may contain an interrupted initdb, or the cluster of a deleted data folder that used this fallback.
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
        `--pgdata=${dataDir}`,
        '--username=postgres',
        '--auth=scram-sha-256',
        `--pwfile=${passwordFile}`,
        // The same sort order on every system.
        '--encoding=UTF8',
        '--locale=C',
        '--locale-provider=builtin',
        '--builtin-locale=C.UTF-8',
        `--lc-ctype=${utf8Locale()}`,
        '--no-sync',
      ],
      { ...runAs, cwd: '/', stdio: 'pipe' },
    )
  } finally {
    rmSync(passwordFile, { force: true })
  }
}

/** pg_trgm uses LC_CTYPE to recognise letters; with `C` it knows only ASCII. */
function utf8Locale(): string {
  const installed = spawnSync('locale', ['-a'], { encoding: 'utf8' }).stdout?.split('\n') ?? []
  return ['C.UTF-8', 'C.utf8', 'en_US.UTF-8', 'en_US.utf8'].find((name) => installed.includes(name)) ?? 'C'
}
