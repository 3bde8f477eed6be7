import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { createKey } from '../../support/api.ts'
import { withApi } from '../../support/with-api.ts'

const spec = (changes: { name?: string; note?: string; more?: string } = {}) => `# Says hello.
name: ${changes.name ?? 'Greet'}
nodes:
  # the text
  say: {type: set_fields, config: {fields: {note: ${changes.note ?? 'hello'}}}}
${changes.more ?? ''}outputs: {note: "{{ nodes.say.output.note }}"}
`
const MORE = '  done: {type: stop, config: {message: bye}}\n'

describe('the versions of a workflow', () => {
  const suite = withApi()

  const request = (method: string, path: string, options: object = {}) =>
    suite.api.request(method, `/v1/workflows${path}`, options)
  const create = async () =>
    (await request('POST', '', { body: { spec: spec() } })).body.workflow_id as string
  const save = async (id: string, body: object) => (await request('PATCH', `/${id}`, { body })).body
  /** Versions 1 to 3, the second of them active. */
  const saved = async () => {
    const id = await create()
    await save(id, { spec: spec({ note: 'hi' }) })
    await request('POST', `/${id}/activate`)
    await save(id, { spec: spec({ note: 'hi', more: MORE }) })
    return id
  }

  it('are listed page by page, newest first, with who saved them and what changed', async () => {
    const id = await saved()
    const { body } = await request('GET', `/${id}/versions`)
    deepEqual(
      body.data.map((row: Record<string, unknown>) => [
        row.version,
        row.active,
        row.summary,
        row.restored_from,
      ]),
      [
        [3, false, 'adds done; changes say', null],
        [2, true, 'changes say', null],
        [1, false, null, null],
      ],
    )
    const { body: me } = await suite.api.request('GET', '/v1/me')
    const { created_by, created_at, workflow_id } = body.data[0]
    deepEqual([created_by, workflow_id], [{ type: 'key', id: me.id, name: me.name }, id])
    ok(Math.abs(Date.parse(created_at) - Date.now()) < 60_000)
    deepEqual([body.total, body.has_more], [3, false])

    const first = (await request('GET', `/${id}/versions?limit=2`)).body
    deepEqual([first.data.length, first.has_more, first.total], [2, true, 3])
    const next = `/${id}/versions?limit=2&cursor=${first.next_cursor}`
    const second = (await request('GET', next)).body
    deepEqual([second.data.map((row: { version: number }) => row.version), second.next_cursor], [[1], null])
    deepEqual((await request('GET', `/${id}/versions?offset=2`)).body.data, second.data)
    const other = await create()
    equal((await request('GET', next.replace(id, other))).status, 400, 'the cursor of another workflow')
  })

  it('are returned as they were saved, comments included', async () => {
    const id = await saved()
    const { status, body } = await request('GET', `/${id}/versions/1`)
    deepEqual([status, body.version, body.spec], [200, 1, spec()])
    equal(body.definition.nodes[0].config.fields.note, 'hello')
    for (const version of ['4', '0', 'latest', '1.5', '99999999999'])
      equal((await request('GET', `/${id}/versions/${version}`)).status, 404, version)
    await request('DELETE', `/${id}`)
    equal((await request('GET', `/${id}/versions/1`)).status, 404)
    equal((await request('GET', `/${id}/versions`)).status, 404)
  })

  it('are compared with the version before, as text and by node', async () => {
    const id = await saved()
    const { body } = await request('GET', `/${id}/versions/3/diff`)
    deepEqual(body, {
      object: 'workflow_diff',
      workflow_id: id,
      version: 3,
      against: 2,
      summary: 'adds done; changes say',
      text: `--- version 2
+++ version 3
@@ -3,4 +3,5 @@
 nodes:
   # the text
   say: {type: set_fields, config: {fields: {note: hi}}}
+  done: {type: stop, config: {message: bye}}
 outputs: {note: "{{ nodes.say.output.note }}"}
`,
      nodes: {
        added: [{ node_id: 'done', type: 'stop' }],
        removed: [],
        changed: [{ node_id: 'say', changes: [{ path: '/next/success', kind: 'added', after: ['done'] }] }],
      },
      others: [],
    })
  })

  it('are compared with any version, and the first one with nothing', async () => {
    const id = await saved()
    await save(id, { spec: spec({ name: 'Other' }) })
    const { body } = await request('GET', `/${id}/versions/1/diff?against=3`)
    deepEqual(body.nodes, {
      added: [],
      removed: [{ node_id: 'done', type: 'stop' }],
      changed: [
        {
          node_id: 'say',
          changes: [
            { path: '/config/fields/note', kind: 'changed', before: 'hi', after: 'hello' },
            { path: '/next/success', kind: 'removed', before: ['done'] },
          ],
        },
      ],
    })
    const first = (await request('GET', `/${id}/versions/1/diff`)).body
    deepEqual([first.against, first.nodes.added.length], [null, 1])
    match(first.text, /^--- \/dev\/null\n\+\+\+ version 1\n@@ -0,0 \+1,6 @@\n\+# Says hello\./)
    const renamed = (await request('GET', `/${id}/versions/4/diff?against=1`)).body
    deepEqual(renamed.others, [{ path: '/name', kind: 'changed', before: 'Greet', after: 'Other' }])
    const same = (await request('GET', `/${id}/versions/2/diff?against=2`)).body
    deepEqual([same.summary, same.text, same.others], ['', '', []])
    equal((await request('GET', `/${id}/versions/2/diff?against=9`)).status, 404)
    equal((await request('GET', `/${id}/versions/2/diff?against=first`)).status, 422)
  })

  it('are restored as a new version with their text, and leave the active version as it is', async () => {
    const id = await saved()
    const { status, body, headers } = await request('POST', `/${id}/versions/1/restore`)
    deepEqual([status, body.version, body.active_version, headers.get('etag')], [200, 4, 2, '"4"'])
    deepEqual([body.spec, body.warnings], [spec(), []])
    const [newest] = (await request('GET', `/${id}/versions`)).body.data
    deepEqual([newest.summary, newest.restored_from], ['removes done; changes say', 1])
    const late = await request('POST', `/${id}/versions/2/restore`, { headers: { 'If-Match': '"3"' } })
    deepEqual([late.status, late.body.error.type], [412, 'version_conflict'])
    equal((await request('POST', `/${id}/versions/9/restore`)).status, 404)
    const entry = await suite.db.system('audit_log').where({ target_id: id }).orderBy('id', 'desc').first()
    deepEqual([entry.action, entry.details], ['workflow.updated', { version: 4, restored_from: 1 }])
  })

  it('that are no longer valid are refused with their findings, and change nothing', async () => {
    const id = await saved()
    await suite.db
      .system('workflow_versions')
      .where({ workflow_id: id, version: 1 })
      .update({ spec: spec().replace('set_fields', 'set_feilds') })
    const { status, body } = await request('POST', `/${id}/versions/1/restore`)
    deepEqual([status, body.error.type], [400, 'workflow_invalid'])
    const [{ code, line, hint }] = body.error.validation.errors
    deepEqual([code, line, hint], ['unknown_node_type', 5, 'did you mean set_fields?'])
    equal((await request('GET', `/${id}`)).body.version, 3)
  })

  it('say that only the text changed, and that nothing did', async () => {
    const id = await create()
    await save(id, { spec: `${spec()}# more\n` })
    await save(id, { spec: `${spec()}# more\n` })
    const { body } = await request('GET', `/${id}/versions`)
    deepEqual(
      body.data.map((row: { summary: string }) => row.summary),
      ['changes nothing', 'changes only the text', null],
    )
  })

  it('are copied to a new draft, with the name in the YAML and all comments', async () => {
    const id = await saved()
    await save(id, { description: 'Mine' })
    const copy = await request('POST', `/${id}/duplicate`, { body: { name: 'Twin: 2' } })
    equal(copy.status, 201)
    const { body } = copy
    deepEqual(
      [body.name, body.status, body.version, body.description, body.active],
      ['Twin: 2', 'DRAFT', 1, 'Mine', false],
    )
    ok(body.workflow_id !== id)
    equal(
      body.spec,
      spec({ note: 'hi', more: MORE }).replace('name: Greet', 'name: "Twin: 2"\ndescription: Mine'),
    )
    equal((await request('POST', `/${id}/duplicate`)).body.name, 'Copy of Greet')
    const older = await request('POST', `/${id}/duplicate`, { body: { version: 1 } })
    deepEqual([older.body.name, older.body.definition.nodes.length], ['Copy of Greet', 1])
    equal(older.body.spec, spec({ name: 'Copy of Greet' }))
    equal((await request('POST', `/${id}/duplicate`, { body: { version: 9 } })).status, 404)
    equal((await request('POST', `/${id}/duplicate`, { body: { nam: 'x' } })).status, 422)
  })

  it('are read with workflows:read, and restored and copied with workflows:author', async () => {
    const id = await saved()
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes: ['workflows:read'] })
    equal((await request('GET', `/${id}/versions/2/diff`, { key })).status, 200)
    equal((await request('POST', `/${id}/versions/1/restore`, { key })).status, 403)
    equal((await request('POST', `/${id}/duplicate`, { key, body: {} })).status, 403)
  })
})
