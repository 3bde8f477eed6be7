import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Rows } from './rows.ts'

/** Operations that would end the session of the requests. */
const EXCLUDED = ['signOut']

/** OpenAPI 3.1 describes the text of a stream, schemathesis expects a description of its events. */
const STREAMS = ['streamRun']

/** The share of requests with a path parameter that name an existing row. */
const SHARE = 0.8

/** Writes the settings of schemathesis into the folder in which it is called. */
export function writeConfig(folder: string, { ids }: Pick<Rows, 'ids'>): void {
  const table = (name: string, entries: Record<string, string>) => [
    `[${name}]`,
    ...Object.entries(entries).map(([key, value]) => `${text(key)} = ${value}`),
    '',
  ]
  const lines = [
    'continue-on-failure = true',
    'request-timeout = 20',
    'max-stream-events = 2',
    'warnings = false',
    '',
    ...table('checks', { enabled: 'false' }),
    ...CHECKS.flatMap((check) => table(`checks.${check}`, { enabled: 'true' })),
    ...table('phases.stateful', { enabled: 'false' }),
    '[[operations]]',
    `include-operation-id = ${JSON.stringify(EXCLUDED)}`,
    'enabled = false',
    '',
    '[[operations]]',
    `include-operation-id = ${JSON.stringify(STREAMS)}`,
    'checks.response_schema_conformance.enabled = false',
    '',
    ...Object.entries(ids).flatMap(([name, values]) =>
      table(`dictionaries.${name}`, { values: JSON.stringify(values) }),
    ),
    ...table(
      'parameters',
      Object.fromEntries(
        Object.keys(ids).map((name) => [
          `path.${name}`,
          `{ dictionary = ${text(name)}, probability = ${SHARE} }`,
        ]),
      ),
    ),
  ]
  writeFileSync(join(folder, 'schemathesis.toml'), lines.join('\n'))
}

const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
]

interface Document {
  paths: Record<string, Record<string, { operationId?: string; parameters?: { name: string }[] }>>
}

/**
 * Writes the document of the api. Only one operation keeps its Idempotency-Key: schemathesis sends few different keys,
 * and all but the first request with one would be conflicts.
 */
export async function writeDocument(folder: string, apiUrl: string): Promise<string> {
  const document = (await (await fetch(`${apiUrl}/openapi.json`)).json()) as Document
  for (const operation of Object.values(document.paths).flatMap((path) => Object.values(path)))
    if (operation.parameters && operation.operationId !== KEYED)
      operation.parameters = operation.parameters.filter(({ name }) => name !== 'Idempotency-Key')
  const file = join(folder, 'openapi.json')
  writeFileSync(file, JSON.stringify(document))
  return file
}

const KEYED = 'createWorkflow'

/** A JSON string is also a TOML string. */
const text = (value: string) => JSON.stringify(value)
