import { z } from 'zod'
import {
  BODY_ERRORS,
  HEADERS_TO_OTHER_ORIGINS,
  HTTP_LIMITS,
  type HttpRequest,
  type HttpResponse,
} from '../effects/http.ts'
import { references } from '../language/expressions/references.ts'
import { NodeError } from '../language/node-error.ts'
import { members, typeOfSchema, UNKNOWN, type ValueType } from '../language/value-types.ts'
import { fileName, fileReference } from '../shared/files.ts'
import { isObject } from '../shared/is-object.ts'
import { EXPRESSION, FILES } from '../shared/limits.ts'
import { LIMITS } from '../shared/run-limits.ts'
import { areWithinSecret } from '../shared/secret-paths.ts'
import { type Authored, type ConfigProblem, defineNode } from './define.ts'
import { errorDetails, headerName, httpUrl, scalar, texts, unexpectedStatus } from './http-fields.ts'
import { declaredType, outputSchemaProblems, requireFit, schemaProblems } from './output-schema.ts'
import { readPages } from './pages.ts'
import { pagesRead, paginate, paginateProblems, typeOfPages } from './paginate.ts'
import { computedPlaces, hideSecretPlaces, secretPlaces, secretPlacesOf } from './secret-places.ts'

const mebibytes = (bytes: number) => `${bytes / 1024 / 1024} MiB`

const result = z.strictObject({
  status: z.int(),
  headers: z.record(z.string(), z.string()),
  body: z
    .unknown()
    .optional()
    .describe(
      `Parsed if the content type is JSON, otherwise text in the charset of the content type; null if it is binary. The node reads at most ${mebibytes(HTTP_LIMITS.responseBytes)} (gzip, deflate and br are decoded), nested at most ${HTTP_LIMITS.depth} levels deep; its output may have at most ${mebibytes(LIMITS.valueBytes)}.`,
    ),
  body_error: z
    .strictObject({
      code: z.enum(Object.keys(BODY_ERRORS) as [keyof typeof BODY_ERRORS]),
      message: z.string(),
    })
    .nullable()
    .optional()
    .describe(
      `Null if \`body\` is what the content type says. Otherwise a code: ${Object.entries(BODY_ERRORS)
        .map(([code, meaning]) => `\`${code}\` (${meaning})`)
        .join(', ')}.`,
    ),
  file: fileReference.optional().describe('With `response: file`.'),
})

export const apiRequest = defineNode({
  type: 'api_request',
  engine: 1,
  laterUses: [
    { engine: 8, isUsed: ({ response }) => response !== undefined },
    { engine: 9, isUsed: ({ output_schema }) => output_schema !== undefined },
    { engine: 11, isUsed: ({ paginate }) => paginate !== undefined },
    {
      engine: 13,
      isUsed: ({ secret_headers, secret_fields }) =>
        secret_headers !== undefined || secret_fields !== undefined,
    },
  ],
  category: 'integration',
  title: 'API request',
  alsoCalled: [
    'http',
    'http_request',
    'request',
    'fetch',
    'api',
    'api_call',
    'webhook',
    'rest',
    'curl',
    'call_api',
  ],
  description:
    'Sends an HTTP request. The node fails if the response status is not in `expected_statuses`; 408, 429 and 5xx are retried as set by `retry`, not before a `Retry-After` of at most an hour. Requests other than GET and HEAD carry an Idempotency-Key header, the same for every attempt. Credentials are kept as secrets of the organization: `Authorization: Bearer {{ secrets.<name> }}`. With `response: file` the output has `file`, a reference to the received file, instead of `body`: crm_manager attaches it to a record, send_email sends it. With `paginate` it reads page after page, and the output is `{items, pages, ended_by}`; each page is a call of its own, which is retried alone, and goes to the origin of `url` only.',
  effect: 'external',
  effects: ['http'],
  config: z.strictObject({
    method: z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD']).default('GET'),
    url: httpUrl,
    headers: z.record(headerName, scalar).default({}),
    query: z.record(z.string(), scalar).default({}).describe('Added to the query of the URL.'),
    body: z
      .union([z.string(), z.record(z.string(), z.unknown()), z.array(z.unknown())])
      .optional()
      .describe(
        'An object or a list is sent as JSON, a string as it is; an object with the header `content-type: application/x-www-form-urlencoded` as a form, inner objects as `card[number]`.',
      ),
    expected_statuses: z
      .array(
        z.union([
          z.int().min(100).max(599),
          z
            .string()
            .regex(/^[1-5]xx$/, 'must be like 2xx')
            .meta({ examples: ['2xx'] }),
        ]),
      )
      .min(1)
      .default(['2xx'])
      .describe('The statuses, or classes such as 2xx, that count as success.'),
    follow_redirects: z
      .boolean()
      .default(true)
      .describe(
        `Follow at most ${HTTP_LIMITS.redirects} redirects, but none from https to http. If false, the redirect is the response. Credentials are not sent to another origin: of the headers, only ${HEADERS_TO_OTHER_ORIGINS.join(', ')} are.`,
      ),
    body_to_other_origins: z
      .boolean()
      .default(false)
      .describe(
        'Whether a redirect that repeats the request (307, 308) may carry the body to another origin. If false, the node fails with `redirect_refused`.',
      ),
    response: z
      .enum(['body', 'file'])
      .default('body')
      .describe(
        `What to return of an expected response: its body, or a file of at most ${mebibytes(FILES.bytes)}, such as a PDF. A file is deleted with its run, unless it is attached to a record.`,
      ),
    file_name: fileName
      .optional()
      .describe('With `response: file`. Default: the name that the response gives, else the end of the URL.'),
    output_schema: z
      .record(z.string(), z.unknown())
      .optional()
      .describe(
        'A JSON Schema that the body must fit, with `paginate` that of each page. Placeholders read the members that it names.',
      ),
    paginate: paginate
      .optional()
      .describe(
        'Read all pages of a list. One of `link_header`, `next`, `cursor`, `page` says how they follow.',
      ),
    until: z
      .string()
      .max(EXPRESSION.template)
      .optional()
      .describe(
        'With `paginate`: the page after which to end, `"{{ page.body.has_more == false }}"`. `page` has `status`, `headers` and `body` of the answer.',
      ),
    ...secretPlaces,
  }),
  isMasked,
  errorDetails,
  output: result.partial().extend(pagesRead.partial().shape),
  late: { until: 'page' },
  lateType: ({ output_schema }) => answerType(output_schema),
  outputType({ response = 'body', output_schema, paginate: pages }) {
    if (pages !== undefined) return typeOfPages(pages, answerType(output_schema))
    const { properties: { file, body, body_error, ...common } = {}, ...type } = typeOfSchema(result)
    if (response === 'file') return { ...type, properties: { ...common, file: file! } }
    if (response !== 'body') return typeOfSchema(result)
    const ofBody = output_schema === undefined ? body! : declaredType(output_schema)
    return { ...type, properties: { ...common, body: ofBody, body_error: body_error! } }
  },
  check: (config) => [
    ...fileProblems(config),
    ...paginateProblems(config, answerType(config.output_schema)),
    ...maskedPages(config),
    ...computedPlaces(config),
    ...outputSchemaProblems(schemaProblems(config.output_schema)),
  ],
  handles: () => [{ name: 'success', description: 'The response has an expected status.' }],
  retry: { max_attempts: 3 },
  example: {
    config: {
      method: 'POST',
      url: 'https://api.example.com/leads',
      body: { email: '{{ trigger.record.email }}' },
    },
    inputs: { trigger: { record: { email: 'ada@example.com' } } },
    output: {
      status: 201,
      headers: { 'content-type': 'application/json' },
      body: { id: 7 },
      body_error: null,
    },
  },
  async run(
    {
      method,
      url,
      headers,
      query,
      body,
      expected_statuses,
      response: wanted,
      file_name,
      output_schema,
      paginate: pages,
      until,
      secret_headers,
      secret_fields,
      ...redirects
    },
    ctx,
  ) {
    const sent = texts(headers)
    const named = Object.keys(sent).some((name) => name.toLowerCase() === 'idempotency-key')
    if (!named && method !== 'GET' && method !== 'HEAD') sent['Idempotency-Key'] = ctx.idempotencyKey
    const bare: HttpRequest = { method, url, headers: sent, query: texts(query), ...redirects }
    const request = body === undefined ? bare : { ...bare, body }
    const takes = (status: number) => expected_statuses.some((expected) => fits(status, expected))
    const places = { secret_headers, secret_fields }
    const shown = <Part extends { headers: Record<string, string>; body?: unknown }>(
      response: Part,
    ): Part => {
      const hidden = hideSecretPlaces(places, response)
      ctx.hide(hidden.values)
      return hidden.shown
    }
    /** Its headers are not shown, and may hold `Retry-After`. */
    const unexpected = (response: HttpResponse) =>
      unexpectedStatus({ ...response, body: shown(response).body })
    if (wanted === 'file') {
      const { file, ...response } = await ctx.http.fetchFile(request, { takes, name: file_name })
      if (!file) throw unexpected(response)
      return { output: { status: response.status, headers: shown(response).headers, file } }
    }
    if (pages !== undefined) {
      // The config of a node test is not validated before.
      const config = { paginate: pages, method, body, until, ...places }
      const [problem] = [...paginateProblems(config, {}), ...maskedPages(config)]
      if (problem) throw new NodeError('invalid_config', problem.message)
      const call = async (one: HttpRequest) => {
        const response = await ctx.http.request(one)
        if (!takes(response.status)) throw unexpected(response)
        requireFit(output_schema, response.body, 'body')
        return response
      }
      return { output: await readPages({ request: bare, paginate: pages, until, ctx, call, shown }) }
    }
    const response = await ctx.http.request(request).catch((error: unknown) => {
      if (!(error instanceof NodeError) || error.code !== 'response_too_large') throw error
      throw new NodeError(error.code, `${error.message}: ${AS_FILE}`)
    })
    if (!takes(response.status)) throw unexpected(response)
    const { status, headers: answered, body: kept } = shown(response)
    const { body: received, body_error: wrong } = response
    const body_error =
      wrong?.code === 'binary_body' ? { ...wrong, message: `${wrong.message}: ${AS_FILE}` } : wrong
    requireFit(output_schema, received, 'output.body')
    return { output: { status, headers: answered, body: kept, body_error } }
  },
})

/** The type of an answer with a body that fits the schema. */
function answerType(output_schema: unknown): ValueType {
  const { status, headers } = typeOfSchema(result).properties!
  return members({
    status: status!,
    headers: headers!,
    body: output_schema === undefined ? UNKNOWN : declaredType(output_schema),
  })
}

/** Whether a path into the output leads to a value that `secret_headers` or `secret_fields` mask. */
function isMasked(config: Authored, [part, ...steps]: readonly string[]): boolean {
  const { secret_headers, secret_fields } = secretPlacesOf(config)
  if (part === 'headers') return steps.length > 0 && secret_headers.includes(steps[0]!.toLowerCase())
  if (part === 'body') return areWithinSecret(steps, secret_fields)
  if (part !== 'items' || !isObject(config.paginate)) return false
  const { items } = config.paginate
  const before = typeof items === 'string' ? items.split('.').slice(1) : []
  return areWithinSecret([...before, ...steps], secret_fields)
}

/** The settings of pages that would read a mask. A position is stored between attempts, so that it cannot be secret. */
function maskedPages(config: Authored): ConfigProblem[] {
  const { paginate: given, until } = config
  if (!isObject(given)) return []
  const problem = (path: PropertyKey[], read: string): ConfigProblem[] => [
    {
      code: 'invalid_value',
      message: `${String(path[0])} reads ${read.slice(0, 100)}, which is in secret_headers or secret_fields: it reads [masked]`,
      path,
      hint: 'take it out of these settings',
    },
  ]
  const cursor = isObject(given.cursor) ? given.cursor.path : undefined
  const named: [PropertyKey[], unknown][] = [
    [['paginate', 'next'], given.next],
    [['paginate', 'cursor', 'path'], cursor],
    [['paginate', 'items'], given.items],
    [['paginate', 'link_header'], given.link_header === undefined ? undefined : 'headers.link'],
  ]
  const places = { secret_headers: config.secret_headers, secret_fields: config.secret_fields }
  return [
    ...named.flatMap(([path, read]) =>
      typeof read === 'string' && isMasked(places, read.split('.')) ? problem(path, read) : [],
    ),
    ...pagePaths(until).flatMap((path) =>
      isMasked(places, path) ? problem(['until'], `page.${path.join('.')}`) : [],
    ),
  ]
}

/** The paths into the page that `until` reads; none of a text with a syntax error, which is reported as such. */
function pagePaths(until: unknown): string[][] {
  if (typeof until !== 'string') return []
  try {
    return references(until).flatMap(({ path: [root, ...path] }) =>
      root === 'page' ? [path.map(String)] : [],
    )
  } catch {
    return []
  }
}

const AS_FILE = '`response: file` keeps it as a file'

function fileProblems({ response = 'body', method, file_name, output_schema }: Authored): ConfigProblem[] {
  const problem = (key: string, message: string, hint: string): ConfigProblem[] => [
    { code: 'invalid_value', message, path: [key], hint },
  ]
  if (response === 'file' && method === 'HEAD')
    return problem('response', 'the response to HEAD has no body, so it is no file', 'use `method: GET`')
  if (response === 'file' && output_schema !== undefined)
    return problem('output_schema', 'a file has no output_schema', 'remove it')
  if (response === 'body' && file_name !== undefined)
    return problem('file_name', 'file_name is only for files', 'add `response: file`')
  return []
}

const fits = (status: number, expected: number | string) =>
  typeof expected === 'number' ? status === expected : String(status)[0] === expected[0]
