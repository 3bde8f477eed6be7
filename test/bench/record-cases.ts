import type { RecordInput } from '../../db/model/records/schemas.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Shot } from './load.ts'
import type { Seeded } from './seed.ts'
import { contactAt, SEEDED_MS } from './seed-values.ts'

/** A measured organization, with values of some of its records. */
export interface Target extends Seeded {
  api: string
  samples: Sample[]
}

interface Sample {
  id: string
  first_name: string
  last_name: string
  email: string
  company_id: string
  external_id: string
  created_at: Date
}

const SAMPLES = 400
const PATH = '/v1/objects/contacts'
/** More than a page. */
const LAST_ROWS = 250

export async function target(db: Database, api: string, seeded: Seeded): Promise<Target> {
  const samples: Sample[] = await db
    .system('contacts')
    .where({ organization_id: seeded.id })
    .whereNotNull('company_id')
    .whereNotNull('external_id')
    .orderByRaw('md5(id::text)')
    .limit(SAMPLES)
  return { ...seeded, api, samples }
}

/** Requests per second, one record each. */
export const singles: Record<string, (target: Target) => (n: number) => Omit<Shot, 'headers'>> = {
  'one: GET': (target) => (n) => ({ path: `${PATH}/${sampleAt(target, n).id}` }),
  'one: POST': () => (n) => ({
    path: PATH,
    method: 'POST',
    body: JSON.stringify({
      first_name: 'Bench',
      email: `bench${n}@example.com`,
      custom_fields: { tier: 'gold', score: n },
    }),
  }),
  'one: PATCH': (target) => (n) => ({
    path: `${PATH}/${sampleAt(target, n).id}`,
    method: 'PATCH',
    body: JSON.stringify({ job_title: `Bench ${n}` }),
  }),
}

export const BATCH = 200

/** Many records in one request. */
export const batches: Record<string, (target: Target) => (n: number) => Omit<Shot, 'headers'>> = {
  [`batch of ${BATCH} creates`]: () => (n) => ({
    path: `${PATH}/batch`,
    method: 'POST',
    body: JSON.stringify({
      operations: Array.from({ length: BATCH }, (_, i) => ({ op: 'create', data: batched(n, i) })),
    }),
  }),
}

/** The record at a position of a batch, as large as the seeded ones. */
export const batched = (n: number, i: number): RecordInput => {
  const {
    id: _,
    created_at: _at,
    updated_at: _to,
    external_id: _key,
    ...data
  } = contactAt((n * BATCH + i) % 1_000_000, 1_000_000, [])
  return { ...data, company_id: null }
}

/** The paths of one list case, requested in turn. */
export const lists: Record<string, (target: Target) => Promise<string[]>> = {
  'first page': async () => [PATH],
  'email=': of(({ email }) => ({ email })),
  'company_id=': of(({ company_id }) => ({ company_id })),
  // Both ranges hold about the same number.
  'created_at between': of((sample, target) => createdNear(sample, target)),
  // Or near the end, if the bench has fewer (`--rows`).
  '10,000 deep by cursor': async (target) => [
    await deep(target, Math.min(10_000, target.contacts - LAST_ROWS)),
  ],
  'half-way by cursor': async (target) => [await deep(target, target.contacts / 2)],
  'lead_status=, no index': async () => [`${PATH}?lead_status=attempted`],
  'custom_fields.tier=': async () => [`${PATH}?custom_fields.tier=gold`],
  'sort=updated_at': async () => [`${PATH}?sort=updated_at`],
  'sort=last_name': async () => [`${PATH}?sort=last_name&order=asc`],
  // Refused where all contacts match: no index has this order.
  'sort=first_name of 100': of((sample, target) => ({
    ...createdNear(sample, target),
    sort: 'first_name',
    order: 'asc',
  })),
  'q of one rare word': of(({ external_id }) => ({ q: external_id })),
  'q of a surname': of(({ last_name }) => ({ q: last_name })),
  'q of a common word': every('gmail', 'engineer', 'pricing', 'example', 'james'),
  'q of two words': of(({ first_name, last_name }) => ({ q: `${first_name} ${last_name}` })),
  'q of two common words': every('gmail engineer', 'berlin pricing', 'james manager'),
  'q of two letters': every('jo', 'ka', 'ma', 'en', 'sz'),
  'q of nothing there': every('qqqqqq', 'xylophone'),
}

const sampleAt = ({ samples }: Target, n: number) => samples[n % samples.length]!

function of(parameters: (sample: Sample, target: Target) => Record<string, string>) {
  return async (target: Target) =>
    target.samples.slice(0, 50).map((sample) => `${PATH}?${new URLSearchParams(parameters(sample, target))}`)
}

/** A filter that about 100 contacts match, in an organization of any size. */
const createdNear = ({ created_at }: Sample, { contacts }: Target) => ({
  'created_at[between]': [created_at, new Date(created_at.getTime() + (100 * SEEDED_MS) / contacts)]
    .map((at) => at.toISOString())
    .join(','),
})

function every(...words: string[]) {
  return async () => words.map((q) => `${PATH}?${new URLSearchParams({ q })}`)
}

/** The page that follows this many records, of which there must be more. */
async function deep({ api, key }: Target, records: number): Promise<string> {
  const before = await fetch(`${api}${PATH}?limit=1&count=none&offset=${Math.floor(records) - 1}`, {
    headers: { authorization: `Bearer ${key}` },
  })
  const { next_cursor } = (await before.json()) as { next_cursor: string }
  return `${PATH}?cursor=${next_cursor}`
}
