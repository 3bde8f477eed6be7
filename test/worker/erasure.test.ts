import assert from 'node:assert/strict'
import { NOT_SEARCHED, PLACES } from '../../db/erasure/places.ts'
import { tenantTables } from '../support/every-table.ts'
import { importsOf } from '../support/imports.ts'
import { until } from '../support/until.ts'
import { withDeliveries } from '../support/with-deliveries.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever JSON came back
type Json = any

const OLD = 'Erika.Alt@mail.example'
const NEW = 'erika.mustermann@mail.example'
const PHONE = '+49 171 2345678'
/** Each way in which something may name the person. */
const NAMED = ['erika.alt@', 'erika.mustermann@', 'erika.mustermann%40', '712345678', '71 2345678']
const FULL_NAMES = ['erika mustermann', 'mustermann, erika', 'erika+mustermann']

/** Keeps what it reads of a record, and sleeps. */
const workflow = (name: string, event: string, field: string) => `name: ${name}
trigger: {type: event, events: [${event}]}
nodes:
  keep:
    type: set_fields
    config: {fields: {kept: "{{ trigger.record.${field} }}"}}
  sleep:
    type: delay
    config: {for: 30d}
outputs: {kept: "{{ nodes.keep.output.kept }}"}
`

describe('the erasure of a person', function () {
  this.timeout(120_000)
  const on = withDeliveries()
  const send = async (method: string, path: string, body?: unknown, headers = {}): Promise<Json> => {
    const answer = await on.api.request(method, path, { headers, ...(body !== undefined && { body }) })
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const create = (kind: string, body: object, headers = {}) =>
    send('POST', `/v1/objects/${kind}`, body, headers)
  const erase = (id: string, body: object = {}) =>
    send('POST', `/v1/objects/contacts/${id}/erase`, { confirm: true, ...body })
  const ended = (id: string): Promise<Json> =>
    until(async () => {
      const now = await send('GET', `/v1/erasures/${id}`)
      return now.status === 'completed' ? now : undefined
    }, 'the end of the erasure')

  /** The rows of all tables of organizations that have one of the texts, as `table: row`. */
  async function rowsWith(texts: string[]): Promise<{ table: string; text: string }[]> {
    return on.db.asOwner(async (client) => {
      const found: { table: string; text: string }[] = []
      for (const { name } of (await tenantTables(client)).filter(({ isView }) => !isView)) {
        const { rows } = await client.query<{ text: string }>(`select t::text as text from "${name}" t`)
        for (const { text } of rows) {
          const hex = /\\x([0-9a-f]+)/.exec(text)
          const all = `${text} ${hex ? Buffer.from(hex[1]!, 'hex') : ''}`.toLowerCase()
          if (texts.some((one) => all.includes(one))) found.push({ table: name, text })
        }
      }
      return found
    })
  }

  it('has each table of organizations among those that it searches, or that it need not', async () => {
    const tables = await on.db.asOwner(tenantTables)
    const known = [...new Set(PLACES.map(({ table }) => table)), ...Object.keys(NOT_SEARCHED)]
    assert.deepEqual(
      known.toSorted(),
      tables.filter(({ isView }) => !isView).map(({ name }) => name),
    )
  })

  it('leaves nothing of a person but what its receipt lists', async () => {
    for (const spec of [
      workflow('Greet', 'contact.created', 'email'),
      workflow('Read', 'note.created', 'body'),
    ]) {
      const { workflow_id } = await send('POST', '/v1/workflows', { spec })
      await send('POST', `/v1/workflows/${workflow_id}/activate`)
    }
    await on.createWebhook({ events: ['contact.*', 'note.*', 'task.*', 'company.*'] })
    const form = (await on.app('POST', '/webhooks/incoming', { name: 'Form' })).body

    // A person from a form, and twice by hand; another of the same name; one with nothing in common.
    await on.api.request('POST', `/webhooks/incoming/${form.id}`, {
      key: null,
      body: `full_name=Erika+Mustermann&email=${encodeURIComponent(NEW)}&message=Call+0171+2345678`,
      headers: { 'X-Webhook-Secret': form.secret, 'Content-Type': 'application/x-www-form-urlencoded' },
    })
    const contact = (await send('GET', `/v1/objects/contacts?email=${NEW}`)).data[0]
    const person = { first_name: 'Erika', last_name: 'Mustermann' }
    const keyed = { 'Idempotency-Key': `new-${NEW}` }
    const twin = await create('contacts', { ...person, email: OLD, external_id: 'E-1' }, keyed)
    await send('PATCH', `/v1/objects/contacts/${contact.id}`, { phone: PHONE, job_title: 'Baker of Ulm' })
    await send('POST', `/v1/objects/contacts/${contact.id}/merge`, { from: twin.id })
    const namesake = await create('contacts', { ...person, email: 'other@mail.example' })
    const company = await create('companies', { name: 'Mill', domain: 'mail.example' })
    await create('deals', { name: 'Flour', contact_id: contact.id, company_id: company.id })
    const note = await create('notes', {
      body: `Asked ${NEW} about flour`,
      associations: [{ object: 'contact', id: contact.id }],
    })
    const linked = await create('activities', {
      type: 'call',
      subject: 'She has two children',
      associations: [{ object: 'contact', id: contact.id }],
    })
    const named = await create('tasks', { title: 'Ring up Erika Mustermann' })
    const changed = await create('tasks', { title: `Mail ${NEW}` })
    await send('PATCH', `/v1/objects/tasks/${changed.id}`, { title: 'Mail her' })
    await on.api.request('POST', `/v1/objects/contacts/${contact.id}/files?name=erika.txt`, {
      body: 'x',
      headers: { 'Content-Type': 'text/plain' },
    })

    const imports = importsOf(on.api)
    const csv = `first_name,email,last_name\nErika,${NEW},Mustermann\nErika,${NEW} and more,Mustermann\n`
    await imports.run({ entity: 'contacts', mode: 'upsert', by: 'email' }, csv)
    const waiting = await imports.prepare({ entity: 'contacts' }, `email\n${OLD}\n`)
    const { id: exportId } = await send('POST', '/v1/exports', { entity: 'contacts', query: { email: NEW } })
    await until(async () => {
      const { status } = await send('GET', `/v1/exports/${exportId}`)
      return status === 'completed'
    }, 'the export')
    const view = await send('POST', '/v1/views', { entity: 'contacts', name: 'Hers', query: { email: NEW } })
    const collection = await send('POST', '/v1/knowledge/collections', { name: 'Handbook' })
    const document = await send('POST', `/v1/knowledge/collections/${collection.id}/documents`, {
      title: 'Customers',
      body: `Our first was ${NEW}.`,
    })
    const runs = await until(async () => {
      const { data } = await send('GET', '/v1/runs?limit=50')
      return data.length >= 4 && data.every(({ status }: Json) => status === 'running') ? data : undefined
    }, 'sleeping runs')
    await until(() => on.receiver.received.length > 8, 'deliveries')
    assert.ok((await rowsWith(NAMED)).length > 20)

    const preview = await send('POST', `/v1/objects/contacts/${contact.id}/erase`, {})
    assert.equal(preview.status, 'confirmation_required')
    assert.equal(preview.preview.contacts, 2)
    // The message of the form is a note, too.
    assert.equal(preview.preview.linked, 3)
    assert.ok(preview.preview.open_runs >= 1, JSON.stringify(preview))
    const sent = on.receiver.received.length
    const begun = await erase(contact.id)
    assert.equal(begun.status, 'running')
    const receipt = await ended(begun.id)

    assert.equal((await on.api.request('GET', `/v1/objects/contacts/${contact.id}`)).status, 404)
    const reviewed = new Map(receipt.to_review.map((one: Json) => [one.id, one.reason]))
    for (const [id, reason] of [
      [note.id, 'linked'],
      [linked.id, 'linked'],
      [named.id, 'name'],
      [namesake.id, 'name'],
      [view.id, 'key'],
      [document.id, 'key'],
      [waiting.body.id, 'key'],
    ])
      assert.equal(reviewed.get(id), reason, `${id} ${JSON.stringify(receipt.to_review)}`)
    assert.ok(!reviewed.has(changed.id))
    const isListed = ({ text }: { text: string }) =>
      [...reviewed.keys()].some((id) => text.includes(id as string))
    // What copies a listed one: passages of the document, pieces of the waiting file.
    const COPIES = ['knowledge_passages', 'import_pieces']
    const remaining = async (texts: string[]) =>
      (await rowsWith(texts)).filter((one) => !isListed(one) && !COPIES.includes(one.table))
    assert.deepEqual(await remaining([...NAMED, 'baker of ulm']), [])
    assert.deepEqual(await remaining(FULL_NAMES), [])
    assert.doesNotMatch(JSON.stringify(receipt), /erika|mustermann|2345678/i)
    assert.equal(receipt.erased.contact, 2)
    for (const object of ['history_entry', 'event', 'delivery', 'run', 'incoming_log', 'stored_answer'])
      assert.ok(receipt.erased[object] > 0, `${object} ${JSON.stringify(receipt.erased)}`)
    assert.equal(receipt.erased.export_file, 1)
    assert.equal(receipt.erased.import_file, 1)

    // No delivery follows with the person's data.
    const later = on.receiver.received.slice(sent).map(({ body }) => body)
    assert.doesNotMatch(later.join(), /erika|2345678/i)
    // Temporal has ids only.
    for (const { run_id } of runs) {
      const handle = on.worker.client.workflow.getHandle(run_id)
      const history = await handle.fetchHistory().catch(() => undefined)
      const text = JSON.stringify(history ?? {}, (_, value) =>
        value instanceof Uint8Array ? Buffer.from(value).toString() : value,
      )
      assert.doesNotMatch(text, /erika|mustermann|2345678/i)
    }
  })
})
