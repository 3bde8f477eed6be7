import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { v7 as uuidv7 } from 'uuid'
import { connect, type Database } from '../db/postgres/connect.ts'
import { startStack, type TestStack } from './support/stack.ts'
import { until } from './support/until.ts'

/** Set `MIXED_LOAD_SECONDS=60 npx mocha …` for a longer test. */
const SECONDS = Number(process.env.MIXED_LOAD_SECONDS ?? 8)
const CLIENTS = 20
/** Between two kills, which alternate between the two api processes. */
const KILL_EVERY_MS = 2_500

type Answer = { status: number; body: { id: string; object: string; data: { id: string }[] } }

describe('two api processes under a mixed load, killed repeatedly', function () {
  this.timeout(SECONDS * 1_000 + 180_000)
  let one: TestStack
  let two: TestStack
  let db: Database

  before(async () => {
    const env = { SECRETS_KEY: randomBytes(32).toString('base64'), LOG_LEVEL: 'warn' }
    one = await startStack({ onSuite: true, env })
    two = await startStack({ env, beside: one })
    db = connect({ url: one.databaseUrl })
  })
  after(async () => {
    await db?.close()
    await two?.stop()
    await one?.stop()
  })

  /** Repeats the same request with the same idempotency key, on either api, until one answers. */
  async function request(method: string, path: string, body?: object): Promise<Answer> {
    const headers = {
      authorization: `Bearer ${one.key}`,
      'content-type': 'application/json',
      'idempotency-key': uuidv7(),
    }
    for (let attempt = Math.random() < 0.5 ? 0 : 1; ; attempt++) {
      const { apiUrl } = attempt % 2 === 0 ? one : two
      try {
        const answer = await fetch(`${apiUrl}/v1/objects${path}`, {
          method,
          headers,
          ...(body && { body: JSON.stringify(body) }),
        })
        const read = { status: answer.status, body: (await answer.json()) as Answer['body'] }
        // 409: the request that lost its connection is still in progress.
        if (answer.status < 500 && answer.status !== 409 && answer.status !== 429) return read
      } catch {}
      await sleep(50)
    }
  }

  const isReady = ({ apiUrl }: TestStack) =>
    fetch(`${apiUrl}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )

  /** One client: creates, updates, links, deletes and restores its own records, one after the other. */
  async function client(isOver: () => boolean, made: Map<string, string>): Promise<void> {
    while (!isOver()) {
      const marker = uuidv7()
      const contact = await request('POST', '/contacts', {
        last_name: 'Load',
        custom_fields: { marker },
      })
      assert.equal(contact.status, 201, JSON.stringify(contact.body))
      made.set(marker, contact.body.id)
      const path = `/contacts/${contact.body.id}`
      const note = await request('POST', '/notes', {
        body: 'About it',
        associations: [{ object: 'contact', id: contact.body.id }],
      })
      assert.equal(note.status, 201, JSON.stringify(note.body))
      const changed = await request('PATCH', path, { job_title: marker, tags: ['load'] })
      assert.equal(changed.status, 200, JSON.stringify(changed.body))
      const choice = Math.random()
      if (choice < 0.3) {
        assert.equal((await request('DELETE', path)).status, 200)
        assert.equal((await request('POST', `${path}/restore`)).status, 200)
      } else if (choice < 0.6) {
        const batch = await request('POST', '/deals/batch', {
          operations: [1, 2, 3].map((n) => ({
            op: 'create',
            data: { name: `Deal ${n}`, contact_id: contact.body.id },
          })),
        })
        assert.equal(batch.status, 200, JSON.stringify(batch.body))
      } else {
        const list = await request('GET', `/contacts?custom_fields.marker=${marker}`)
        assert.equal(list.body.data.length, 1, 'what was answered is found at once')
      }
    }
  }

  it('lose and duplicate no change, and keep history and events complete', async () => {
    const end = Date.now() + SECONDS * 1_000
    // As long as a busy machine needs for two kills.
    let kills = 0
    const isOver = () => Date.now() >= end && kills >= 2
    const made = new Map<string, string>()
    const clients = Array.from({ length: CLIENTS }, () => client(isOver, made))
    const killing = (async () => {
      for (let turn = 0; kills < 2 || Date.now() + 1_000 < end; turn++) {
        await sleep(KILL_EVERY_MS)
        const victim = turn % 2 === 0 ? one : two
        // The supervisor restarts a process more slowly after each kill.
        if (!(await isReady(victim))) continue
        victim.kill('api')
        kills++
      }
    })()
    await Promise.all([...clients, killing])
    assert.ok(made.size > CLIENTS, `work was done: ${made.size} contacts`)

    const { rows: contacts } = await db.system.raw(
      "select custom_fields ->> 'marker' as marker, array_agg(id) as ids from contacts where custom_fields ? 'marker' group by 1".replace(
        '? ',
        '\\? ',
      ),
    )
    assert.deepEqual(
      contacts.filter(({ ids }: { ids: string[] }) => ids.length > 1),
      [],
      'one record for each Idempotency-Key',
    )
    for (const [marker, id] of made)
      assert.ok(
        contacts.some((row: { marker: string; ids: string[] }) => row.marker === marker && row.ids[0] === id),
        `${id} is kept`,
      )

    for (const entity of ['contacts', 'notes', 'deals']) {
      const { rows: broken } = await db.system.raw(
        `select r.id, r.version, h.versions, h.last, e.events
         from ${entity} r
         left join lateral (
           select count(*) as versions, max(version) as last from record_history h
           where h.organization_id = r.organization_id and h.record_id = r.id) h on true
         left join lateral (
           select count(*) as events from events e
           where e.organization_id = r.organization_id and e.subject_id = r.id
             and e.name in (:created, :updated, :deleted, :restored)) e on true
         where h.versions <> r.version or h.last <> r.version or e.events <> r.version`,
        Object.fromEntries(
          ['created', 'updated', 'deleted', 'restored'].map((action) => [
            action,
            `${entity.slice(0, -1)}.${action}`,
          ]),
        ),
      )
      assert.deepEqual(broken, [], `each version of ${entity} has one entry in the history and one event`)
    }
  })

  it('give the same answers', async () => {
    for (const stack of [one, two]) await until(() => isReady(stack), 'the api to be back')
    for (const path of [
      '/contacts?limit=200&sort=last_name&count=exact',
      '/deals?limit=200&order=asc',
      '/notes?q=about&limit=100',
      '/contacts/schema',
    ]) {
      const [a, b] = await Promise.all(
        [one, two].map(async ({ apiUrl }) => {
          const answer = await fetch(`${apiUrl}/v1/objects${path}`, {
            headers: { authorization: `Bearer ${one.key}` },
          })
          assert.equal(answer.status, 200)
          return answer.json()
        }),
      )
      assert.deepEqual(a, b, path)
    }
  })
})
