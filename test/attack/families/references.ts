import type { Family } from '../family.ts'
import type { Answer, Ground } from '../ground.ts'

/** Each names a row of the victim in a body or a query, beside rows of the attacker. */
const REFUSED = [400, 403, 404, 409, 422]

/** Ids of another organization where no path has them: bodies, queries, specs of workflows. */
export const references: Family = {
  name: 'references',
  title: 'ids of another organization in bodies and queries',
  async run(ground, tally) {
    const { attacker, victim, mark } = ground
    const tables = [
      'contacts',
      'companies',
      'workflows',
      'runs',
      'files',
      'memberships',
      'bulk_jobs',
      'exports',
    ]
    const ids = Object.fromEntries(
      await Promise.all(tables.map(async (table) => [table, await ground.victimId(table)])),
    ) as Record<string, string>
    const own = await ownRows(ground)
    const bearer = { Authorization: `Bearer ${attacker.key}` }
    const session = await attacker.session('owner')
    const record = { object: 'contacts', id: ids.contacts }
    const node = (type: string, config: object) => ({
      spec: JSON.stringify({ name: `With ${type}`, nodes: { one: { type, config } } }),
    })
    const writes: [method: string, path: string, body: object][] = [
      ['POST', `/v1/objects/contacts/${own.contact}/merge`, { from: ids.contacts }],
      ['PATCH', `/v1/objects/contacts/${own.contact}`, { company_id: ids.companies }],
      ['PATCH', `/v1/objects/contacts/${own.contact}`, { owner_id: ids.memberships }],
      ['POST', '/v1/objects/deals', { name: 'x', company_id: ids.companies }],
      ['POST', '/v1/objects/notes', { body: 'x', associations: [record] }],
      ['POST', `/v1/objects/contacts/${own.contact}/associations/companies/${ids.companies}`, {}],
      [
        'POST',
        '/v1/objects/contacts/bulk',
        { action: 'reassign', query: {}, owner_id: ids.memberships, confirm: true },
      ],
      ['POST', `/v1/objects/contacts/${own.contact}/revert`, { version: 99 }],
      ['POST', '/app/webhooks/incoming', { name: 'x', workflow_id: ids.workflows }],
    ]
    const looks: [method: string, path: string, body?: object][] = [
      [
        'POST',
        '/v1/objects/contacts/batch',
        {
          operations: [
            { op: 'update', id: ids.contacts, data: { tags: ['x'] } },
            { op: 'delete', id: ids.contacts },
          ],
        },
      ],
      ['POST', '/v1/objects/contacts/bulk', { action: 'delete', query: { id: ids.contacts }, confirm: true }],
      ['POST', '/v1/run-batches', { action: 'retry', filter: { workflow_id: ids.workflows }, confirm: true }],
      ['POST', '/v1/exports', { entity: 'contacts', query: { company_id: ids.companies } }],
      [
        'POST',
        '/v1/workflows/nodes/test',
        {
          node_type: 'crm_manager',
          config: { operation: 'get', entity: 'contacts', id: ids.contacts },
          confirm: true,
        },
      ],
      [
        'POST',
        '/v1/workflows/nodes/test',
        {
          node_type: 'crm_manager',
          config: { operation: 'list_files', entity: 'contacts', id: ids.contacts },
          confirm: true,
        },
      ],
      [
        'POST',
        '/v1/workflows/test',
        { ...node('crm_manager', { operation: 'get', entity: 'contacts', id: ids.contacts }), confirm: true },
      ],
      ['POST', '/v1/workflows/validate', node('run_workflow', { workflow_id: ids.workflows })],
      ['GET', `/v1/runs?record_id=${ids.contacts}`],
      ['GET', `/v1/runs?workflow_id=${ids.workflows}`],
      ['GET', `/v1/objects/deals?company_id=${ids.companies}`],
      ['GET', `/v1/objects/contacts?q=${mark}`],
      ['GET', `/v1/knowledge/search?q=${mark}`],
      ['GET', `/app/audit-log?target_id=${ids.workflows}`],
    ]
    const send = (method: string, path: string, body?: object): Promise<Answer> =>
      ground.send(method, path, path.startsWith('/app/') ? session : bearer, body)
    for (const [method, path, body] of writes) {
      const answer = await send(method, path, body)
      tally.attempt(
        REFUSED.includes(answer.status),
        `${method} ${path} ${JSON.stringify(body)}: ${answer.status}`,
      )
    }
    for (const [method, path, body] of looks) {
      const { text, status } = await send(method, path, body)
      // The query of an answer repeats what was asked for.
      const isLeak = text.replaceAll(/"(query|q)":("[^"]*"|\{[^}]*\})/g, '').includes(mark)
      tally.attempt(status < 500 && !isLeak, `${method} ${path}: ${status} ${text.slice(0, 300)}`)
    }
    const { text } = await ground.send('GET', `/v1/objects/contacts/${ids.contacts}`, {
      Authorization: `Bearer ${victim.key}`,
    })
    tally.attempt(JSON.parse(text).id === ids.contacts, 'the contact of the victim is gone')
    tally.attempt(!JSON.parse(text).tags.includes('x'), 'the contact of the victim was changed')
  },
}

async function ownRows({ send, attacker }: Ground): Promise<{ contact: string }> {
  const made = await send(
    'POST',
    '/v1/objects/contacts',
    { Authorization: `Bearer ${attacker.key}` },
    { last_name: 'Attacker' },
  )
  return { contact: JSON.parse(made.text).id }
}
