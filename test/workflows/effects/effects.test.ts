import assert from 'node:assert/strict'
import { type EffectName, type Effects, effectNames, ports } from '../../../workflows/effects/index.ts'
import { dry, narrated } from '../../../workflows/effects/narrate.ts'
import type { Records } from '../../../workflows/effects/records.ts'
import { contextOf, effectsFor } from '../../../workflows/interpret/context.ts'
import { httpResponse } from '../../support/http-response.ts'

const ID = '019a0000-0000-7000-8000-000000000001'
const secret = { password: 'hunter2' }
const PERSON = { id: ID, name: 'hunter2', email: 'hunter2', role: 'member' }

/** A call of every method of every effect, the descriptions of the call and of its result, and the result. */
const calls: [
  effect: EffectName,
  method: string,
  args: unknown[],
  result: unknown,
  said: [string, string],
][] = [
  [
    'http',
    'request',
    [
      {
        method: 'POST',
        url: 'https://x.test/a?token=hunter2',
        query: { b: 'hunter2' },
        headers: { 'X-Key': 'hunter2' },
        body: secret,
      },
    ],
    httpResponse({ headers: { 'content-type': 'text/plain' }, body: 'hunter2', body_bytes: 7 }),
    [
      'POST https://x.test/a, query token b, headers X-Key, a body of 22 bytes',
      'answered 200, text/plain, 7 bytes',
    ],
  ],
  [
    'http',
    'fetchFile',
    [
      { method: 'GET', url: 'https://x.test/a.pdf?token=hunter2' },
      { takes: () => true, name: 'hunter2' },
    ],
    {
      ...httpResponse({ headers: { 'content-type': 'application/pdf' }, body_bytes: 7 }),
      file: { file_id: ID, name: 'hunter2', content_type: 'application/pdf', size: 7 },
    },
    [
      'GET https://x.test/a.pdf, query token, for a file',
      `answered 200, application/pdf, 7 bytes, kept as file ${ID}`,
    ],
  ],
  [
    'records',
    'attachFile',
    ['deals', 'x', { file_id: ID }],
    { file_id: ID, name: 'hunter2', content_type: 'application/pdf', size: 7 },
    [`attaching the file ${ID} to x of deals`, `attached the file ${ID} to x of deals`],
  ],
  [
    'records',
    'listFiles',
    ['deals', 'x'],
    { data: [{ file_id: ID, name: 'hunter2' }], has_more: true },
    ['listing the files of x of deals', 'found 1, and there are more'],
  ],
  [
    'events',
    'emit',
    ['invoice.paid', secret],
    ID,
    ['raising the event invoice.paid, fields password', `raised the event invoice.paid, ${ID}`],
  ],
  [
    'lookups',
    'offer',
    [[{ tool: 'search_records', entities: ['contacts', 'deals'] }]],
    undefined,
    ['the model may call search_records of contacts, deals', 'offered'],
  ],
  [
    'lookups',
    'get',
    ['contacts', 'x'],
    { object: 'contact', id: 'x', email: secret },
    ['reading x of contacts for the model', 'read contact x'],
  ],
  [
    'lookups',
    'search',
    ['contacts', { filters: { email: secret } }],
    { data: [{ object: 'contact', id: 'x', email: secret }], has_more: false },
    ['searching contacts for the model, filters email', 'found 1'],
  ],
  [
    'lookups',
    'listRelated',
    ['contacts', 'x', 'deals'],
    { data: [], has_more: true },
    ['listing the deals of x of contacts for the model', 'found 0, and there are more'],
  ],
  ['people', 'get', [ID], PERSON, [`reading the user ${ID}`, `read the user ${ID}`]],
  ['people', 'find', ['hunter2'], PERSON, ['finding a user by email', `found the user ${ID}`]],
  ['people', 'list', ['member'], [PERSON, PERSON], ['listing users', 'found 2']],
  [
    'people',
    'next',
    ['leads', ['hunter2']],
    PERSON,
    ['taking the next turn of the rotation leads', `the turn of the rotation leads is that of ${ID}`],
  ],
  [
    'keyValues',
    'get',
    ['seen:7'],
    { key: 'seen:7', value: secret, expires_at: null },
    ['reading the key seen:7', 'read the key seen:7'],
  ],
  [
    'keyValues',
    'set',
    ['seen:7', secret, { ttlMs: null, onlyIfAbsent: true }],
    { key: 'seen:7', value: secret, expires_at: null, stored: false },
    ['setting the key seen:7 if it is absent', 'the key seen:7 was there already'],
  ],
  [
    'keyValues',
    'increment',
    ['count', 1, null],
    { key: 'count', value: 8, expires_at: null },
    ['incrementing the key count', 'incremented the key count'],
  ],
  [
    'keyValues',
    'delete',
    ['count'],
    { key: 'count', deleted: true },
    ['deleting the key count', 'deleted the key count'],
  ],
  [
    'keyValues',
    'list',
    ['seen:', 2],
    { data: [{ key: 'seen:7', value: secret, expires_at: null }], has_more: true },
    ['listing keys that begin with "seen:"', 'found 1 keys, and there are more'],
  ],
  [
    'analytics',
    'query',
    [
      {
        metric: 'deals.won',
        group_by: ['stage', 'owner_id'],
        interval: 'day',
        filter: { source: 'hunter2' },
      },
    ],
    { rows: [{}, {}] },
    ['querying deals.won by stage and owner_id per day', 'deals.won has 2 rows'],
  ],
  [
    'knowledge',
    'search',
    [{ q: 'hunter2', collection: 'Help', tags: ['hunter2'], match: 'any', mode: 'hybrid', limit: 5 }],
    { passages: [secret], has_more: true },
    [
      'searching the collection Help, 1 tags, by hybrid, at most 5 passages',
      'found 1 passages, and there are more',
    ],
  ],
  [
    'knowledge',
    'add',
    [
      'Help',
      { title: 'hunter2', body: 'hunter2', format: 'text', tags: [], source_url: null, external_id: 'a' },
    ],
    {
      id: ID,
      collection_id: ID,
      external_id: 'a',
      title: 'hunter2',
      passages: 1,
      version: 2,
      created: false,
    },
    [
      'adding a document to the collection Help, 7 bytes of text, instead of the one with the external_id a',
      `replaced the document ${ID}, 1 passages`,
    ],
  ],
  [
    'rates',
    'latest',
    [],
    { base: 'EUR', date: '2026-01-05', rates: { USD: '1.2' } },
    ['reading the exchange rates', 'read 1 rates of 2026-01-05'],
  ],
  [
    'rates',
    'shipped',
    [],
    { base: 'EUR', date: '2026-01-05', shipped: true, rates: { USD: '1.2' } },
    ['taking the exchange rates that the service ships', 'took the rates of 2026-01-05'],
  ],
  [
    'responses',
    'respond',
    [{ status: 200, headers: { 'X-Token': 'hunter2' }, content_type: 'text/plain', body: 'hunter2' }],
    'hunter2',
    ['answering the sender with 200, text/plain', 'answered the sender with 200'],
  ],
  [
    'sandbox',
    'run',
    [{ code: 'return "hunter2"\n', inputs: { a: 'hunter2' }, seed: 'x', now: new Date() }],
    { result: 'hunter2', log: ['hunter2'] },
    ['running 2 lines of code, inputs a', 'the code has ended, with 1 lines of log'],
  ],
  [
    'mail',
    'send',
    [
      {
        to: [{ name: 'hunter2', address: 'ada@example.com' }],
        cc: [],
        bcc: Array.from({ length: 7 }, (_, n) => ({ name: '', address: `b${n}@example.com` })),
        subject: 'hunter2',
        text: 'hunter2',
      },
    ],
    { message_id: '<1@example.com>', accepted: ['ada@example.com'], rejected: [{ reply: 'hunter2' }] },
    [
      'sending a mail to ada@example.com, b0@example.com, b1@example.com, b2@example.com, b3@example.com and 3 more',
      'sent <1@example.com> to 1 addresses, 1 were refused',
    ],
  ],
  [
    'runs',
    'start',
    ['Welcome', secret],
    { run_id: ID, workflow_id: ID },
    ['starting the workflow Welcome, inputs password', `started the workflow Welcome, run ${ID}`],
  ],
  [
    'records',
    'create',
    ['contacts', secret],
    { object: 'contact', id: ID, ...secret },
    ['creating a record in contacts, fields password', `created contact ${ID}`],
  ],
  [
    'records',
    'get',
    ['contacts', ID],
    { object: 'contact', id: ID, ...secret },
    [`reading ${ID} of contacts`, `read contact ${ID}`],
  ],
  [
    'records',
    'search',
    ['contacts', { filters: { email: 'hunter2' }, q: 'hunter2', limit: 1 }],
    { data: [secret], has_more: true },
    ['searching contacts, by q limit, filters email', 'found 1, and there are more'],
  ],
  [
    'records',
    'searchAll',
    ['contacts', { filters: { email: 'hunter2' }, q: 'hunter2' }, 1_000],
    { data: [secret], has_more: false, next_cursor: null },
    ['searching contacts, by q, filters email, all of them, 1000 at most', 'found 1'],
  ],
  [
    'records',
    'update',
    ['contacts', ID, secret],
    { object: 'contact', id: ID, version: 2, ...secret },
    [`updating ${ID} of contacts, fields password`, `updated contact ${ID}, now version 2`],
  ],
  [
    'records',
    'upsert',
    ['contacts', 'email', secret],
    { record: { object: 'contact', id: ID, ...secret }, created: false },
    ['upserting a record in contacts by email, fields password', `updated contact ${ID}`],
  ],
  [
    'records',
    'delete',
    ['contacts', ID],
    { id: ID, deleted: true },
    [`deleting ${ID} of contacts`, `deleted ${ID} of contacts`],
  ],
  [
    'records',
    'link',
    ['contacts', ID, 'companies', 'other', secret],
    {},
    [`linking ${ID} of contacts to other of companies`, `linked ${ID} of contacts to other of companies`],
  ],
  [
    'records',
    'unlink',
    ['contacts', ID, 'companies', 'other'],
    {},
    [
      `unlinking ${ID} of contacts from other of companies`,
      `unlinked ${ID} of contacts from other of companies`,
    ],
  ],
  [
    'records',
    'listRelated',
    ['contacts', ID, 'companies'],
    { data: [], has_more: false },
    [`listing the companies of ${ID} of contacts`, 'found 0'],
  ],
]

const invoke = (effect: object, method: string, args: unknown[]) =>
  (effect as Record<string, (...args: unknown[]) => Promise<unknown>>)[method]!(...args)

describe('effects', () => {
  for (const [name, method, args, result, said] of calls) {
    it(`describe a call of ${name}.${method} without its values`, async () => {
      const lines: string[] = []
      const effect = { [method]: async () => result } as unknown as Effects[typeof name]
      const told = narrated(ports[name] as never, effect as never, (line) => lines.push(line))
      assert.equal(await invoke(told, method, args), result)
      assert.deepEqual(
        lines.map((line) => line.replace(/ \(\d+ ms\)$/, '')),
        said,
      )
      assert.doesNotMatch(lines.join(), /hunter2/)
    })

    it(`only describe a call of ${name}.${method} in a dry run`, async () => {
      const lines: string[] = []
      const pending = invoke(
        dry(ports[name] as never, (line) => lines.push(line)),
        method,
        args,
      )
      const first = await Promise.race([pending, new Promise((resolve) => setImmediate(resolve, 'pending'))])
      assert.deepEqual([first, lines], ['pending', [said[0]]])
    })
  }

  it('describe every method', () => {
    const described = effectNames.flatMap((name) =>
      Object.keys(ports[name].words).map((method) => `${name}.${method}`),
    )
    assert.deepEqual(described.sort(), calls.map(([name, method]) => `${name}.${method}`).sort())
  })

  it('report that a call failed, and its duration', async () => {
    const lines: string[] = []
    const get = async () => {
      throw new Error('no')
    }
    const told = narrated(ports.records, { get } as unknown as Records, (line) => lines.push(line))
    await assert.rejects(told.get('contacts', ID), /no/)
    assert.match(lines[1]!, /^failed after \d+ ms$/)
  })

  it('are present if a node declares them and its class allows them; access to others throws', () => {
    const contextWith = (declared: EffectName[], effectClass: 'pure' | 'read' | 'write' | 'external') =>
      contextOf({
        run: { id: ID, workflow_id: null, workflow_name: 'Test' },
        organization: { id: ID, currency: 'EUR', timezone: 'UTC' },
        now: new Date(),
        node: { id: 'it', attempt: 1 },
        signal: new AbortController().signal,
        effects: effectsFor(declared, effectClass, (name) => dry(ports[name], () => {})),
      }) as unknown as Partial<Effects>
    const refused = { code: 'effect_not_allowed' }
    const reading = contextWith(['records', 'events'], 'read')
    assert.ok(reading.records)
    assert.throws(() => reading.events, refused)
    assert.throws(() => reading.http, refused)
    assert.ok(!('http' in { ...reading }))
    assert.ok(contextWith(['records', 'events'], 'write').events)
    assert.throws(() => contextWith(['records', 'http'], 'external').records, refused)
    assert.ok(contextWith(['http'], 'external').http)
    for (const name of effectNames) assert.throws(() => contextWith([...effectNames], 'pure')[name], refused)
  })
})
