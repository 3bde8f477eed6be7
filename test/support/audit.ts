import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * `npm run audit`: asks the registry for known vulnerabilities of the packages that run in production. Exits with 0 if
 * there is none of high severity, with 1 if there is one, with 2 if the registry could not be asked.
 *
 * With `--if-reachable`, as part of `npm run check`: that the registry could not be asked is only a warning. A mirror
 * without the audit endpoint, or no network, must not stop work. What the lock file says is checked in both cases.
 */

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const SEVERE = ['high', 'critical']
/** Timeout of the single request, in milliseconds. */
const TIMEOUT_MS = 15_000

interface Report {
  vulnerabilities?: Record<
    string,
    { name: string; severity: string; range: string; via: (string | Advisory)[] }
  >
  message?: string
  error?: { summary?: string }
}

interface Advisory {
  title: string
  url: string
}

const problems = [...lockProblems(), ...(await knownVulnerabilities())]
if (problems.length > 0) {
  process.stderr.write(`${problems.join('\n')}\n`)
  process.exit(1)
}

/** Packages that are not pinned to a published version: npm could install another one. */
function lockProblems(): string[] {
  const { packages } = JSON.parse(readFileSync(`${ROOT}package-lock.json`, 'utf8')) as {
    packages: Record<string, { integrity?: string; resolved?: string; link?: true }>
  }
  return Object.entries(packages).flatMap(([path, { integrity, resolved, link }]) => {
    // Without a URL, it comes from the configured registry.
    const isPublished = !link && (resolved === undefined || resolved.startsWith('https://'))
    if (path === '' || (isPublished && integrity?.startsWith('sha512-'))) return []
    return [`package-lock.json: ${path} is not pinned to a SHA-512 of a registry`]
  })
}

async function knownVulnerabilities(): Promise<string[]> {
  const { vulnerabilities, message, error } = await npmAudit()
  if (!vulnerabilities) {
    const reason = message ?? error?.summary ?? 'npm gave no report'
    process.stderr.write(`dependencies were NOT checked for vulnerabilities: ${reason}\n`)
    if (process.argv.includes('--if-reachable')) return []
    process.exit(2)
  }
  const severe = Object.values(vulnerabilities).filter(({ severity }) => SEVERE.includes(severity))
  if (severe.length === 0) process.stdout.write('dependencies: no known vulnerability of high severity\n')
  return severe.map(({ name, severity, range, via }) => {
    const causes = via.map((one) => (typeof one === 'string' ? `by ${one}` : `${one.title} (${one.url})`))
    return `${name} ${range}: ${severity}: ${causes.join('; ')}`
  })
}

/** npm exits with 1 both for vulnerabilities and for a registry that does not answer; its report tells them apart. */
function npmAudit(): Promise<Report> {
  const options = ['--omit=dev', '--json', '--fetch-retries=0', `--fetch-timeout=${TIMEOUT_MS}`]
  return new Promise((resolve) => {
    execFile(
      'npm',
      ['audit', ...options],
      { cwd: ROOT, timeout: 2 * TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 },
      (_, out) => {
        try {
          resolve(JSON.parse(out))
        } catch {
          resolve({})
        }
      },
    )
  })
}
