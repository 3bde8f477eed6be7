import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { MAX_PUBLIC_REQUESTS, MAX_USER_REQUESTS } from '../../api/app/limit-requests.ts'
import { connect } from '../../db/postgres/connect.ts'
import { liftLimits } from '../bench/setup.ts'
import { startOutside } from '../load/outside.ts'
import { optionsOf } from '../support/command.ts'
import { temporaryFolder } from '../support/folder.ts'
import { pythonWith } from '../support/python.ts'
import { LOCAL_ONLY, startStack } from '../support/stack.ts'
import { answered } from './answered.ts'
import { writeConfig, writeDocument } from './config.ts'
import { prepareRows, type Rows } from './rows.ts'

const SCHEMATHESIS = 'schemathesis==4.32.5'

/**
 * `npm run fuzz [-- --examples=20] [--path=/v1/runs] [--seed=1]`: schemathesis sends valid and invalid requests,
 * generated from /openapi.json, to every operation of a started stack. Prints each response of 500 or above, and each
 * response whose status, content type, headers or body the document does not describe, with a `curl` line. Exits with 1
 * if there is one, with 2 if schemathesis cannot be installed.
 */
const USAGE = `npm run fuzz [-- --examples=20] [--path=/v1/runs] [--seed=1]

  --examples=N  requests of each kind per operation
  --path=PATH   only operations whose path begins with it
  --seed=N      other requests`
const { values } = optionsOf(USAGE, {
  options: {
    examples: { type: 'string', default: '20' },
    path: { type: 'string', default: '/' },
    seed: { type: 'string' },
  },
})
const say = (line: string) => void process.stdout.write(`${line}\n`)

const python = await pythonWith(SCHEMATHESIS).catch((error: Error) => {
  say(`cannot fuzz: needs python3 with venv, and PyPI for ${SCHEMATHESIS}: ${error.message.split('\n')[0]}`)
  return process.exit(2)
})
say('starting a stack …')
const stack = await startStack({ env: { ...LOCAL_ONLY, ALLOW_INSECURE_WEBHOOKS: 'true' } })
const db = connect({ url: stack.databaseUrl })
const outside = await startOutside()
let status = 1
try {
  await liftLimits(db)
  const rows = await prepareRows(stack, db, outside)
  const folder = temporaryFolder()
  writeConfig(folder, rows)
  const document = await writeDocument(folder, stack.apiUrl)
  status = 0
  for (const realm of realmsOf(values.path, rows)) status = (await fuzz(folder, document, realm)) || status
  for (const line of await answered(stack.apiUrl)) say(line)
} finally {
  await db.close()
  await stack.stop()
  await outside.close()
}
process.exit(status)

interface Realm {
  prefix: string
  /** A regular expression. */
  paths: string
  headers: Record<string, string>
  /** Below the limit that no plan raises. */
  rate?: string
}

/** Each realm with its credentials; /app refuses keys, and /v1 sessions. */
function realmsOf(path: string, { key, session }: Rows): Realm[] {
  const all: Realm[] = [
    { prefix: '/v1/', paths: '^/v1/', headers: { Authorization: `Bearer ${key}` } },
    { prefix: '/app/', paths: '^/app/', headers: session, rate: `${MAX_USER_REQUESTS - 20}/m` },
    { prefix: '/', paths: '^/(?!v1/|app/)', headers: {}, rate: `${MAX_PUBLIC_REQUESTS - 20}/m` },
  ]
  if (path === '/') return all
  const realm = all.find(({ prefix }) => path.startsWith(prefix))
  return realm ? [{ ...realm, paths: `^${path}` }] : []
}

/** Runs in the folder of the settings, where schemathesis also keeps its findings. @returns its exit code. */
async function fuzz(cwd: string, document: string, { paths, headers, rate }: Realm): Promise<number> {
  const schemathesis = spawn(
    python,
    [
      '-m',
      'schemathesis.cli',
      'run',
      document,
      '--url',
      stack.apiUrl,
      '--max-examples',
      values.examples,
      '--include-path-regex',
      paths,
      ...(rate ? ['--rate-limit', rate] : []),
      ...(values.seed ? ['--seed', values.seed] : []),
      ...Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`]),
    ],
    { cwd, stdio: 'inherit' },
  )
  const [code] = (await once(schemathesis, 'exit')) as [number | null]
  return code ?? 1
}
