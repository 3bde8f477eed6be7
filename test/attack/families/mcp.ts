import { randomUUID } from 'node:crypto'
import { SCOPES, type Scope } from '../../../api/http/scopes.ts'
import { nameOf } from '../../../api/mcp/operations.ts'
import type { Json } from '../../support/mcp.ts'
import { covers, filled, promisedFor, tablesOf } from '../../support/route-paths.ts'
import type { Family, Tally } from '../family.ts'
import type { Ground } from '../ground.ts'
import { callOf, callTool, operations, sendMcp, tablesOfOperation } from '../mcp.ts'
import { restingState, stateOf } from './tenants.ts'

/** Every tool with every kind and action that the route table gives it. */
export const mcp: Family = {
  name: 'mcp',
  title: 'every action of every tool with foreign ids, and with a key of each scope',
  async run(ground, tally) {
    const before = await restingState(ground)
    await foreignIds(ground, tally)
    await foreignResources(ground, tally)
    await narrowKeys(ground, tally)
    const after = await stateOf(ground)
    for (const [table, hash] of before) tally.attempt(after.get(table) === hash, `rows of ${table} changed`)
  },
}

const REFUSED = ['not_found', 'validation_error', 'invalid_request', 'method_not_allowed', 'protocol']
/** An id as a part of another path. */
const AROUND = ['../contacts/', '%2e%2e%2f', '..;/', './']

/** Ids of the victim in the path of every operation. */
async function foreignIds(ground: Ground, tally: Tally): Promise<void> {
  const { attacker, victimId } = ground
  for (const operation of operations) {
    const tables = tablesOfOperation(operation)
    // A write without an id would only change what is the attacker's own.
    if (tables.length === 0 && operation.route.method !== 'GET') continue
    const ids: [string, string][] = await Promise.all(
      tables.map(async ([name, table]) => [name, await victimId(table)]),
    )
    for (const around of tables.length === 0 ? [''] : ['', ...AROUND]) {
      const given = callOf(operation, Object.fromEntries(ids.map(([name, id]) => [name, around + id])))
      const { error, text } = await callTool(ground, attacker.key, given)
      const what = `${nameOf(operation)} ${JSON.stringify(given[1]).slice(0, 200)}: ${text.slice(0, 300)}`
      tally.attempt(tables.length === 0 || REFUSED.includes(error ?? ''), what)
      repelLeak(ground, tally, what, text)
    }
  }
}

function repelLeak({ mark, victim }: Ground, tally: Tally, what: string, text: string): void {
  tally.attempt(!text.includes(mark) && !text.includes(victim.organizationId), `${what} leaks`)
}

/** Resources and the completions of their ids. */
async function foreignResources(ground: Ground, tally: Tally): Promise<void> {
  const { attacker, victimId, mark } = ground
  const ask = (method: string, params: Json) => sendMcp(ground, attacker.key, method, params)
  const { result } = await ask('resources/templates/list', {})
  const templates = (result?.resourceTemplates ?? []).map(
    (one: Json) => one.uriTemplate as string,
  ) as string[]
  const ofRows = templates.flatMap((template) =>
    tablesOf(template.replace(/\{(kind|topic)\}/, '')).map(
      ([name, table]) => [template, name, table] as const,
    ),
  )
  tally.attempt(ofRows.length > 0, 'there is no resource with an id to attack')
  for (const [template, name, table] of ofRows) {
    const id = await victimId(table)
    for (const value of [id, `../${id}`, `${id}?expand=all`, encodeURIComponent(`${id}/../${id}`)]) {
      const { error, text } = await ask('resources/read', { uri: template.replace(`{${name}}`, value) })
      tally.attempt(error !== undefined, `${template} with ${value}: ${text.slice(0, 300)}`)
      repelLeak(ground, tally, template, text)
    }
    const ref = { type: 'ref/resource', uri: template }
    for (const value of ['', mark.slice(0, 4), id.slice(0, 8)]) {
      const { text } = await ask('completion/complete', { ref, argument: { name, value } })
      repelLeak(ground, tally, `completions of ${template} from ${value}`, text)
      tally.attempt(!text.includes(id), `completions of ${template} from ${value} have the victim's`)
    }
  }
}

/** Every operation with a key of no scope, and of each one alone. */
async function narrowKeys(ground: Ground, tally: Tally): Promise<void> {
  const sets: Scope[][] = [[], ...SCOPES.map((scope) => [scope])]
  const keys = await Promise.all(sets.map((set) => ground.attacker.keyWith(set)))
  for (const operation of operations) {
    const { route, fixed } = operation
    // The scopes of a row are known once there is one: the family `scopes` makes such rows.
    if (typeof route.scope === 'object' && 'ofRecords' in route.scope) continue
    const ids = Object.fromEntries(tablesOfOperation(operation).map(([name]) => [name, randomUUID()]))
    const needed = promisedFor(route.method, filled(route.path, { ...ids, ...fixed }))
    await Promise.all(
      sets.map(async (held, i) => {
        if (needed.every((scope) => held.some((one) => covers(one, scope)))) return
        const { error, text } = await callTool(ground, keys[i]!, callOf(operation, ids))
        const what = `${nameOf(operation)} with ${held.join(' ') || 'no scope'}: ${text.slice(0, 300)}`
        tally.attempt(error === 'insufficient_scope', what)
      }),
    )
  }
  const listed = await sendMcp(ground, keys[0]!, 'tools/list', {})
  tally.attempt(!/"(delete_record|run_workflow)"/.test(listed.text), 'a key without scopes is offered tools')
}
