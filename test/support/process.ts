import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { SHARED_DATA } from './bundle.ts'
import { searchText } from './planted.ts'
import { quietPort } from './quiet-port.ts'

/** One process of the service, as `npm run api` or `npm run worker` starts it. */
export interface TestProcess {
  child: ChildProcess
  /** The URL of the process, without a trailing slash. */
  url: string
  /** Its log so far; empty if `stdio` redirects it. */
  output(): string
  /** Its exit code or signal. */
  exited: Promise<number | NodeJS.Signals>
  /** Sends a signal and waits for the end. @returns the exit code or signal, and how long it took. */
  stop(signal?: NodeJS.Signals): Promise<{ code: number | NodeJS.Signals; milliseconds: number }>
}

export interface ProcessOptions {
  databaseUrl: string
  env?: Record<string, string>
  stdio?: SpawnOptions['stdio']
  /** Default: until /readyz answers 200. */
  until?: '/readyz' | '/healthz'
  /** The folder of another version's sources, see other-version.ts. Default: those of this project. */
  root?: string
}

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

const START_MS = 240_000

/** Resolves when the process responds to `until`. Throws with its log if it exits before. */
export async function startProcess(
  name: 'api' | 'worker',
  { databaseUrl, env = {}, stdio, until = '/readyz', root = ROOT }: ProcessOptions,
): Promise<TestProcess> {
  const port = await quietPort()
  const child = spawn(process.execPath, ['worker/run.mjs', `${name}/main.ts`], {
    cwd: root,
    stdio: stdio ?? ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      NODE_ENV: 'test',
      NODE_V8_COVERAGE: '',
      DATABASE_URL: databaseUrl,
      DATA_DIR: SHARED_DATA,
      SECRETS_KEY: Buffer.alloc(32).toString('base64'),
      TEMPORAL_ADDRESS: process.env.TEST_TEMPORAL_ADDRESS,
      EGRESS_ALLOW: '127.0.0.1/32',
      // No balancer polls it.
      SHUTDOWN_DELAY: '0',
      [name === 'api' ? 'PORT' : 'WORKER_PORT']: String(port),
      ...env,
    },
  })
  let output = ''
  if (stdio === undefined)
    for (const stream of [child.stdout!, child.stderr!])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
  const exited = once(child, 'close').then(([code, signal]) => {
    searchText(`the output of the ${name}`, output)
    return (code ?? signal) as number | NodeJS.Signals
  })
  const url = `http://127.0.0.1:${port}`
  for (const deadline = Date.now() + START_MS; ; ) {
    const response = await fetch(url + until).catch(() => undefined)
    if (response?.status === 200) break
    if (child.exitCode !== null || Date.now() > deadline) {
      child.kill('SIGKILL')
      throw new Error(`the ${name} did not start: ${output}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return {
    child,
    url,
    output: () => output,
    exited,
    async stop(signal = 'SIGTERM') {
      const started = performance.now()
      child.kill(signal)
      return { code: await exited, milliseconds: performance.now() - started }
    },
  }
}
