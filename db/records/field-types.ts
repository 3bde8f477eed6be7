import { parsePhoneNumberFromString } from 'libphonenumber-js'
import { z } from 'zod'
import type { Field, FieldType } from './kind.ts'

export type Operator =
  | 'eq'
  | 'ne'
  | 'gt'
  | 'gte'
  | 'lt'
  | 'lte'
  | 'between'
  | 'in'
  | 'nin'
  | 'contains'
  | 'starts_with'
  | 'is_null'
  | 'has'

const EQUALITY: Operator[] = ['eq', 'ne', 'in', 'nin', 'is_null']
const ORDERED: Operator[] = [...EQUALITY, 'gt', 'gte', 'lt', 'lte', 'between']
const TEXT: Operator[] = [...ORDERED, 'contains', 'starts_with']

/** Everything that differs between types of field. */
interface TypeOf {
  /** What a client may write; parsing normalises. */
  input: (field: Field) => z.ZodType
  operators: Operator[]
  /** The column's type in SQL, which filter values and cursors are cast to. */
  sql: string
  /** Parses a filter value; undefined where it is not one of the type. */
  filterValue: (text: string) => string | undefined
  /** What a filter value must look like, for the error. */
  expects: string
  sortable: boolean
}

const MAX_MONEY_DIGITS = 16
const CURRENCIES = new Set(Intl.supportedValuesOf('currency'))

/** What PostgreSQL can store: its text has no NUL, its JSON no half of a surrogate pair. */
export const isStorable = (text: string): boolean => !/[\0\p{Surrogate}]/u.test(text)

const trimmed = (field: Field) =>
  z
    .string()
    .trim()
    .min(1)
    .max(field.max ?? 255)

const text: TypeOf = {
  input: trimmed,
  operators: TEXT,
  sql: 'text',
  filterValue: (value) => (isStorable(value) ? value : undefined),
  expects: 'a text',
  sortable: true,
}

const instant = z.iso.datetime({ offset: true }).or(z.iso.date())

/** To milliseconds in UTC, as everything is stored and shown; undefined outside the years 1 to 9999. */
export function toTimestamp(value: string): string | undefined {
  const date = new Date(value)
  if (Number.isNaN(date.getTime())) return undefined
  const text = date.toISOString()
  return /^(?!0000)\d{4}-/.test(text) ? text : undefined
}

export const fieldTypes: Record<FieldType, TypeOf> = {
  text,
  email: { ...text, input: () => z.string().trim().max(254).pipe(z.email()) },
  phone: { ...text, input: () => z.string().trim().min(1).max(64).transform(toE164) },
  url: {
    ...text,
    input: () =>
      z
        .string()
        .trim()
        .overwrite(withScheme)
        .max(2_048)
        .pipe(z.url({ protocol: /^https?$/, error: 'must be an http or https address' })),
  },
  domain: {
    ...text,
    input: () =>
      z
        .string()
        .trim()
        .overwrite(toDomain)
        .max(253)
        .regex(/^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+(?!\d+$)[a-z0-9-]{2,}$/, 'must be a domain such as example.com'),
  },
  integer: {
    input: () => z.int().min(0).max(2_147_483_647),
    operators: ORDERED,
    sql: 'integer',
    filterValue: (value) =>
      /^-?\d{1,10}$/.test(value) && Math.abs(Number(value)) <= 2_147_483_647 ? value : undefined,
    expects: 'a whole number',
    sortable: true,
  },
  money: {
    input: () => z.union([z.string(), z.number()]).transform(toMoney),
    operators: ORDERED,
    sql: 'numeric',
    filterValue: (value) => (/^-?\d{1,16}(\.\d{1,8})?$/.test(value) ? value : undefined),
    expects: 'a decimal such as 1250.00',
    sortable: true,
  },
  currency: {
    ...text,
    input: () =>
      z
        .string()
        .trim()
        .toUpperCase()
        .regex(/^[A-Z]{3}$/, 'must be an ISO 4217 code such as USD')
        .refine((code) => CURRENCIES.has(code), 'is no currency of ISO 4217'),
  },
  timezone: {
    ...text,
    input: () => z.string().trim().max(64).refine(isTimezone, 'must be an IANA name such as Europe/Zurich'),
  },
  boolean: {
    input: () => z.boolean(),
    operators: ['eq', 'ne', 'is_null'],
    sql: 'boolean',
    filterValue: (value) => (value === 'true' || value === 'false' ? value : undefined),
    expects: 'true or false',
    sortable: true,
  },
  datetime: {
    input: () => instant.transform(toStoredTimestamp),
    operators: ORDERED,
    sql: 'timestamptz',
    filterValue: (value) => (instant.safeParse(value).success ? toTimestamp(value) : undefined),
    expects: 'a date or time such as 2026-01-31 or 2026-01-31T09:00:00Z',
    sortable: true,
  },
  enum: { ...text, input: (field) => z.enum(field.values as [string, ...string[]]), operators: EQUALITY },
  reference: {
    input: () => z.uuid().toLowerCase(),
    operators: EQUALITY,
    sql: 'uuid',
    filterValue: (value) => (z.uuid().safeParse(value).success ? value.toLowerCase() : undefined),
    expects: 'an id',
    sortable: true,
  },
  address: {
    input: () => {
      const part = z.string().trim().max(255).nullable().optional()
      return z.strictObject({
        line1: part,
        line2: part,
        city: part,
        state: part,
        postal_code: part,
        country: part,
      })
    },
    operators: ['is_null'],
    sql: 'jsonb',
    filterValue: () => undefined,
    expects: 'is_null',
    sortable: false,
  },
}

/** E.164 where it parses as an international number; else as it was written, for a half number is better than none. */
function toE164(value: string): string {
  const parsed = parsePhoneNumberFromString(value)
  return parsed?.isValid() ? parsed.number : value
}

/** `example.com/about` as people write it. */
const withScheme = (value: string): string =>
  /^[\p{L}\p{N}-]+(\.[\p{L}\p{N}-]+)+(:\d+)?([/?#]|$)/u.test(value) ? `https://${value}` : value

/** The host of an address, without `www.`; what is no address stays as it is. */
function toDomain(value: string): string {
  if (value.includes('@')) return value
  const address = /^https?:\/\//i.test(value) ? value : `https://${value}`
  if (!URL.canParse(address)) return value
  return new URL(address).hostname.replace(/^www\./, '').replace(/\.$/, '')
}

function isTimezone(name: string): boolean {
  try {
    // Offsets such as +01:00 are accepted there too, but are no names.
    return /^[A-Z]/.test(name) && Boolean(new Intl.DateTimeFormat('en', { timeZone: name }))
  } catch {
    return false
  }
}

function toStoredTimestamp(value: string, ctx: z.RefinementCtx): string {
  const timestamp = toTimestamp(value)
  if (timestamp !== undefined) return timestamp
  ctx.addIssue({ code: 'custom', message: 'must be in the years 0001 to 9999', params: { type: 'datetime' } })
  return z.NEVER
}

/** A decimal with at least two places, as text: money is never a float. */
function toMoney(value: string | number, ctx: z.RefinementCtx): string {
  const written = typeof value === 'number' ? String(value) : value.trim()
  const match = /^(-?)(\d+)(?:\.(\d{1,8}))?$/.exec(written)
  const whole = match?.[2]?.replace(/^0+(?=\d)/, '')
  if (!match || !whole || whole.length > MAX_MONEY_DIGITS) {
    ctx.addIssue({
      code: 'custom',
      message: 'must be a decimal such as "1250.00"',
      params: { type: 'decimal' },
    })
    return z.NEVER
  }
  const places = (match[3] ?? '').replace(/0+$/, '').padEnd(2, '0')
  // PostgreSQL has no negative zero.
  const sign = /[1-9]/.test(whole + places) ? match[1] : ''
  return `${sign}${whole}.${places}`
}
