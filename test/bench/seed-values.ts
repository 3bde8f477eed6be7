import { v7 as uuidv7 } from 'uuid'

/**
 * The values of the benches' records: names, companies and domains with a realistic, uneven distribution. Some words
 * occur in one record of a million, others in every third. The same number always gives the same values.
 */
const FIRST =
  'James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth William Barbara Richard Susan Joseph Jessica Thomas Sarah Charles Karen Christopher Lisa Daniel Nancy Matthew Betty Anthony Sandra Mark Margaret Donald Ashley Steven Kimberly Andrew Emily Paul Donna Joshua Michelle Kenneth Carol Kevin Amanda Brian Melissa Zoë Jürgen Łukasz Renée'.split(
    ' ',
  )
const SYLLABLES =
  'ba be bo ca co da den der fa fer ga gel ha hol ka ken la lan len ma man mer na nor o pa pel ra ren ri ro sa schu sen son ta ter to va vin wal wen zer'.split(
    ' ',
  )
const TITLES =
  'Engineer|Senior Engineer|Account Manager|Sales Director|Head of Marketing|Chief Executive Officer|Office Manager|Product Manager|Analyst|Consultant|Buyer|Head of Procurement|Founder|Teacher|Nurse|Lawyer'.split(
    '|',
  )
const CITIES =
  'London|Paris|Berlin|Zürich|New York|San Francisco|Chicago|Madrid|Roma|Wien|Tromsø|Kraków|São Paulo|Tokyo'.split(
    '|',
  )
const SOURCES = ['web', 'referral', 'trade fair', 'cold call', 'partner']
const TIERS = ['bronze', 'bronze', 'bronze', 'silver', 'silver', 'gold']
const STATUSES = ['new', 'open', 'in_progress', 'attempted', 'connected', 'unqualified', null, null]
const STAGES = ['subscriber', 'lead', 'lead', 'mql', 'sql', 'opportunity', 'customer', 'customer']
const INTERESTS = 'pricing|integrations|onboarding|migration|support|roadmap|security|training'.split('|')
/** The time over which the contacts were created. */
export const SEEDED_MS = 3 * 365 * 86_400_000

/** The nth of `count` contacts, created one after another over three years. */
export function contactAt(n: number, count: number, companyIds: string[]): Record<string, unknown> {
  const random = generator(n)
  const first = skewed(FIRST, random)
  const last = surname(random)
  const domain = random() < 0.3 ? 'gmail.com' : `${surname(random)}.com`.toLowerCase()
  const account = ascii(`${first}.${last}${n}`)
  const at = createdAt(n, count)
  return {
    id: uuidv7({ msecs: at }),
    first_name: first,
    last_name: last,
    email: `${account}@${domain}`,
    phone: `+1${2_000_000_000 + Math.floor(random() * 7_000_000_000)}`,
    job_title: skewed(TITLES, random),
    company_id: random() < 0.7 ? skewed(companyIds, random) : null,
    address: { city: skewed(CITIES, random), country: 'Anywhere' },
    lead_source: skewed(SOURCES, random),
    lead_status: pick(STATUSES, random),
    lifecycle_stage: pick(STAGES, random),
    do_not_contact: random() < 0.05,
    external_id: `crm-${n}`,
    tags: random() < 0.1 ? ['vip'] : [],
    custom_fields: {
      tier: pick(TIERS, random),
      score: Math.floor(random() * 1_000),
      interest: `${pick(INTERESTS, random)} and ${pick(INTERESTS, random)}`,
      contract: random().toString(36).slice(2, 10),
    },
    created_at: new Date(at).toISOString(),
    updated_at: new Date(at).toISOString(),
  }
}

export function companyAt(n: number, count: number): Record<string, unknown> {
  const random = generator(-1 - n)
  const name = `${surname(random)} ${pick(['Ltd', 'Inc', 'GmbH', 'SA'], random)}`
  const at = createdAt(0, count)
  const time = new Date(at).toISOString()
  return { id: uuidv7({ msecs: at }), name, created_at: time, updated_at: time }
}

/** Some tens of thousands, of which a few hundred are common. */
function surname(random: () => number): string {
  const parts = random() < 0.5 ? 2 : 3
  const name = Array.from({ length: parts }, () => skewed(SYLLABLES, random)).join('')
  return name[0]!.toUpperCase() + name.slice(1)
}

const END = Date.UTC(2026, 9, 31)
const createdAt = (n: number, count: number) => Math.floor(END - SEEDED_MS * (1 - n / count))

const ascii = (text: string) =>
  text
    .toLowerCase()
    .normalize('NFD')
    .replace(/[^\w.]/g, '')

const pick = <T>(values: readonly T[], random: () => number): T =>
  values[Math.floor(random() * values.length)]!

/** A random value; the first ones are far more likely. */
const skewed = <T>(values: readonly T[], random: () => number): T =>
  values[Math.floor(random() ** 2 * values.length)]!

/** mulberry32: small, fast and sufficiently uniform. */
function generator(seed: number): () => number {
  let state = (seed * 0x9e3779b1) >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
