import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { appRoutes } from '../../api/app/route-table.ts'
import { openApi } from '../../api/http/openapi.ts'
import { routes } from '../../api/v1/route-table.ts'

/** Lints the OpenAPI document of the running code, by the rules of .redocly.yaml. Warnings fail too. Needs no network. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'agx-openapi-'))
const file = join(folder, 'openapi.json')
writeFileSync(file, JSON.stringify(await openApi(routes, appRoutes, 'https://agx.test'), null, 2))

const { status, stdout, stderr } = spawnSync(
  join(ROOT, 'node_modules/.bin/redocly'),
  ['lint', file, '--config', join(ROOT, '.redocly.yaml'), '--format', 'json'],
  {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
  },
)
rmSync(folder, { recursive: true })

interface Problem {
  severity: string
  ruleId: string
  message: string
  location: { pointer?: string }[]
}
// An empty standard output means that the linter itself failed.
const problems: Problem[] | undefined = stdout ? JSON.parse(stdout).problems : undefined
for (const { severity, ruleId, message, location } of problems ?? [])
  process.stderr.write(`${severity} ${ruleId}: ${message} (${location[0]?.pointer})\n`)
if (!problems) process.stderr.write(stderr)
else if (problems.length === 0) process.stdout.write('OpenAPI: no errors or warnings\n')
process.exitCode = problems?.length === 0 && status === 0 ? 0 : 1
