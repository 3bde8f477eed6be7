import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import { fileURLToPath } from 'node:url'
import { ConfigError } from '../../db/model/config-error.ts'

/** The newest release that `go build` can build from published modules; see temporal-cli/go.mod. */
const VERSION = '1.5.1'
const EXE = process.platform === 'win32' ? 'temporal.exe' : 'temporal'
/** Short, so that a machine without internet access quickly tries the next source. */
const CONNECT_TIMEOUT = 5_000
const STALL_TIMEOUT = 30_000

export interface CliOptions {
  /** TEMPORAL_CLI_PATH. */
  path?: string | undefined
  env: NodeJS.ProcessEnv
  /** Receives progress lines with the expected duration. */
  progress(line: string): void
  /** Aborts a download or a build. */
  signal?: AbortSignal
}

/**
 * Finds the Temporal CLI, whose `server start-dev` is the development server, or downloads or builds it into the
 * user's cache. If all ways fail, throws a ConfigError that lists the five ways.
 * @returns its path.
 */
export async function findTemporalCli(options: CliOptions): Promise<string> {
  const { path, env } = options
  if (path !== undefined) {
    if (existsSync(path)) return path
    throw new ConfigError(`TEMPORAL_CLI_PATH ${path} does not exist`)
  }
  const onPath = findOnPath('temporal', env)
  if (onPath) return onPath
  const folder = join(cacheFolder(env), 'agx', `temporal-cli-${VERSION}-${process.platform}-${process.arch}`)
  const cached = join(folder, EXE)
  if (existsSync(cached)) return cached

  mkdirSync(folder, { recursive: true })
  const work = mkdtempSync(join(folder, 'making-'))
  try {
    const made = join(work, EXE)
    const downloaded = await attempt(() => download(work, made, options))
    const built = downloaded === undefined ? undefined : await attempt(() => build(made, options))
    if (built !== undefined) throw new ConfigError(allFailed(cached, downloaded!, built))
    // Renamed when complete: another process may look for it at the same time.
    renameSync(made, cached)
    return cached
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** @returns the error message, or undefined. */
async function attempt(way: () => Promise<void>): Promise<string | undefined> {
  try {
    await way()
    return undefined
  } catch (error) {
    const { message, cause } = error as Error
    return cause instanceof Error ? `${message}: ${cause.message}` : message
  }
}

function allFailed(cached: string, download: string, build: string): string {
  return [
    'The Temporal development server could not be found, downloaded or built. Do one of these five:',
    '  1. set TEMPORAL_CLI_PATH to a Temporal CLI (https://docs.temporal.io/cli)',
    '  2. put `temporal` on PATH',
    `  3. put it at ${cached}`,
    `  4. let this machine reach https://temporal.download (${download})`,
    `  5. install Go 1.25 or later and let it reach a module proxy (${build})`,
    'Or set TEMPORAL_ADDRESS to a running Temporal server.',
  ].join('\n')
}

function findOnPath(program: string, env: NodeJS.ProcessEnv): string | undefined {
  const exe = process.platform === 'win32' ? `${program}.exe` : program
  return (env.PATH ?? '')
    .split(delimiter)
    .filter(Boolean)
    .map((folder) => join(folder, exe))
    .find(existsSync)
}

function cacheFolder(env: NodeJS.ProcessEnv): string {
  if (env.XDG_CACHE_HOME) return env.XDG_CACHE_HOME
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Caches')
  if (process.platform === 'win32' && env.LOCALAPPDATA) return env.LOCALAPPDATA
  return join(homedir(), '.cache')
}

/** From the download service that Temporal's SDKs use; it answers with the archive's URL for this platform. */
async function download(work: string, made: string, { progress, signal }: CliOptions): Promise<void> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const arch = process.arch === 'x64' ? 'amd64' : process.arch
  const url = `https://temporal.download/cli/v${VERSION}?platform=${platform}&arch=${arch}&format=tar.gz`
  const answer = await fetch(url, { signal: AbortSignal.timeout(CONNECT_TIMEOUT) })
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`)
  const info = (await answer.json()) as { archiveUrl: string; fileToExtract: string }
  progress(`downloading the Temporal CLI ${VERSION} (about 60 MB, once)`)

  const archive = join(work, 'archive.tar.gz')
  const stalled = new AbortController()
  signal?.addEventListener('abort', () => stalled.abort())
  let timer = setTimeout(() => stalled.abort(), STALL_TIMEOUT)
  const response = await fetch(info.archiveUrl, { signal: stalled.signal })
  if (!response.ok || !response.body) throw new Error(`${info.archiveUrl} answered ${response.status}`)
  const body = Readable.fromWeb(response.body as ReadableStream).on('data', () => {
    clearTimeout(timer)
    timer = setTimeout(() => stalled.abort(), STALL_TIMEOUT)
  })
  await pipeline(body, createWriteStream(archive)).finally(() => clearTimeout(timer))
  const unpacked = spawnSync('tar', ['-xzf', archive, '-C', work, info.fileToExtract], { encoding: 'utf8' })
  if (unpacked.status !== 0) throw new Error(`tar failed: ${unpacked.stderr ?? unpacked.error?.message}`)
  if (join(work, info.fileToExtract) !== made) copyFileSync(join(work, info.fileToExtract), made)
}

async function build(made: string, { env, progress, signal }: CliOptions): Promise<void> {
  if (!findOnPath('go', env)) throw new Error('no `go` on PATH')
  progress(`building the Temporal CLI ${VERSION} with Go (two to five minutes, once)`)
  const started = Date.now()
  const ticker = setInterval(
    () => progress(`still building the Temporal CLI, ${Math.round((Date.now() - started) / 1000)} s so far`),
    15_000,
  )
  const args = [
    'build',
    '-trimpath',
    '-ldflags',
    '-s -w',
    '-o',
    made,
    'github.com/temporalio/cli/cmd/temporal',
  ]
  const child = spawn('go', args, {
    cwd: fileURLToPath(new URL('temporal-cli/', import.meta.url)),
    env: { ...env, CGO_ENABLED: '0' },
    ...(signal && { signal }),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let problem = ''
  child.stderr.on('data', (chunk) => {
    problem = `${problem}${chunk}`.slice(-2_000)
  })
  const [code] = await once(child, 'close').finally(() => clearInterval(ticker))
  if (code !== 0) throw new Error(`go build failed: ${problem.trim().split('\n').at(-1)}`)
}
