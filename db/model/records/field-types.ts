import { z } from 'zod'
import type { FilterOperator } from '../../../workflows/shared/operators.ts'
import { isStorable } from '../../../workflows/shared/storable-text.ts'
import { isTimezone, NO_TIMEZONE } from '../../../workflows/shared/timezone.ts'
import type { Field, FieldType } from './kind.ts'
import { isRelativeDay } from './relative-days.ts'
import {
  DECIMAL,
  isCurrency,
  isDay,
  isDomain,
  isLocal,
  MONEY,
  QUANTITY,
  toDomain,
  toE164,
  toMoney,
  toStoredTimestamp,
  toTimestamp,
  withScheme,
} from './values.ts'

export type Operator = FilterOperator

const EQUALITY: Operator[] = ['eq', 'ne', 'in', 'nin', 'is_null']
const ORDERED: Operator[] = [...EQUALITY, 'gt', 'gte', 'lt', 'lte', 'between']
const TEXT: Operator[] = [...ORDERED, 'contains', 'starts_with']

/** Everything that depends on the type of a field. */
interface TypeOf {
  /** The schema of a client's value; parsing normalises it. */
  input: (field: Field) => z.ZodType
  operators: Operator[]
  /** Stored as text, compared case-insensitively. */
  isText?: true
  /** Parses a filter value; undefined if it does not match the type. */
  filterValue: (text: string) => string | undefined
  /** The expected filter value, for errors. */
  expects: string
  sortable: boolean
  /** The part of a value that full-text search includes; undefined if none. */
  searched?: (value: unknown) => unknown
}

/** The maximum number of values of a field that lists addresses. */
const MAX_LISTED = 20

/** A list of texts, also as one text that separates them by commas, semicolons or lines, as in cells and forms. */
const listOf = (item: z.ZodType<string, string>) =>
  z
    .union([z.string().max(5_000), z.array(z.string())])
    .transform((given) =>
      typeof given === 'string'
        ? given.split(/[,;\n]/).flatMap((one) => (one.trim() === '' ? [] : one.trim()))
        : given,
    )
    .pipe(z.array(item).max(MAX_LISTED))
    .transform((values) =>
      values.filter(
        (value, place) => values.findIndex((other) => other.toLowerCase() === value.toLowerCase()) === place,
      ),
    )

const LIST: Operator[] = ['has', 'has_not', 'is_null']

export const ADDRESS_PARTS = ['line1', 'line2', 'city', 'state', 'postal_code', 'country']

const identity = (value: unknown) => value

const trimmed = (field: Field) =>
  z
    .string()
    .trim()
    .min(1)
    .max(field.max ?? 255)

const text: TypeOf = {
  input: trimmed,
  operators: TEXT,
  isText: true,
  filterValue: (value) => (isStorable(value) ? value : undefined),
  expects: 'a text',
  sortable: true,
  searched: identity,
}

const day = z.iso
  .date('must be a valid date such as 2026-01-31')
  .refine(isDay, 'must be in the years 0001 to 9999')
/** Its own pattern is 300 characters long, in each field of the OpenAPI document. */
const localTime = z
  .string()
  .regex(/^[\d-]{10}T[\d:.]{5,18}$/)
  .refine((time) => z.iso.datetime({ local: true }).safeParse(time).success)
const instant = z
  .union(
    [z.iso.datetime({ offset: true }), localTime, z.iso.date()],
    'must be a valid date or time, such as 2026-01-31 or 2026-01-31T09:00:00Z; without an offset it is in the time zone of the organization',
  )
  .meta({ id: 'DateOrTime' })

const reference: TypeOf = {
  input: () => z.uuid().toLowerCase(),
  operators: EQUALITY,
  filterValue: (value) => (z.uuid().safeParse(value).success ? value.toLowerCase() : undefined),
  expects: 'an id',
  sortable: true,
}

export const fieldTypes: Record<FieldType, TypeOf> = {
  text,
  email: {
    ...text,
    input: () => z.string().trim().max(254).pipe(z.email()),
    // URL decoding turns a + that was not encoded into a space, which no address has inside.
    filterValue: (value) => text.filterValue(value.replace(/(?<=\S) (?=\S)/g, '+')),
  },
  emails: {
    input: () => listOf(z.string().trim().max(254).pipe(z.email())),
    operators: LIST,
    filterValue: (value) => fieldTypes.email.filterValue(value),
    expects: 'an email address',
    sortable: false,
    searched: identity,
  },
  phones: {
    input: () =>
      listOf(
        z
          .string()
          .trim()
          .min(1)
          .max(64)
          .transform((value) => toE164(value)),
      ),
    operators: LIST,
    // URL decoding turns a + that was not encoded into a space.
    filterValue: (value) => toE164(value.replace(/^ (?=\d)/, '+')),
    expects: 'a phone number',
    sortable: false,
    searched: identity,
  },
  phone: {
    ...text,
    input: () =>
      z
        .string()
        .trim()
        .min(1)
        .max(64)
        .transform((value) => toE164(value)),
    // URL decoding turns a + that was not encoded into a space.
    filterValue: (value) => text.filterValue(value.replace(/^ (?=\d)/, '+')),
  },
  url: {
    ...text,
    input: () =>
      z
        .string()
        .trim()
        .overwrite(withScheme)
        .max(2_048)
        .pipe(z.url({ protocol: /^https?$/, error: 'must be an http or https URL' })),
  },
  domain: {
    ...text,
    input: () =>
      z
        .string()
        .trim()
        .overwrite(toDomain)
        .max(253)
        // Not a `pattern`: the OpenAPI document would then refuse web addresses, which are accepted.
        .refine(isDomain, {
          error: 'must be a domain such as example.com',
          params: { type: 'invalid_format' },
        }),
  },
  integer: {
    input: (field) =>
      z
        .int()
        .min(0)
        .max(field.max ?? 2_147_483_647),
    operators: ORDERED,
    filterValue: (value) =>
      /^-?\d{1,10}$/.test(value) && Math.abs(Number(value)) <= 2_147_483_647 ? value : undefined,
    expects: 'an integer, at most 2147483647',
    sortable: true,
    searched: identity,
  },
  money: {
    input: () =>
      z.union([z.string(), z.number()], DECIMAL).meta({ pattern: MONEY.source }).transform(toMoney),
    operators: ORDERED,
    filterValue: (value) => (/^-?\d{1,16}(\.\d{1,8})?$/.test(value) ? value : undefined),
    expects: 'a decimal such as 1250.00',
    sortable: true,
    searched: identity,
  },
  decimal: {
    input: ({ max }) =>
      z
        .union([z.string(), z.number()], DECIMAL)
        .meta({ pattern: QUANTITY.source })
        .transform(toMoney)
        .refine((value) => !value.startsWith('-'), 'must not be negative')
        .refine((value) => max === undefined || Number(value) <= max, `must be at most ${max}`)
        .transform((value) => value.replace(/\.?0+$/, '')),
    operators: ORDERED,
    filterValue: (value) => fieldTypes.money.filterValue(value),
    expects: 'a decimal such as 1.5',
    sortable: true,
    searched: identity,
  },
  currency: {
    ...text,
    input: () =>
      z
        .string()
        // Before trimming: the pattern is part of the OpenAPI document.
        .regex(/^\s*[A-Za-z]{3}\s*$/, 'must be an ISO 4217 code such as USD')
        .trim()
        .toUpperCase()
        .refine(isCurrency, 'is not an ISO 4217 currency'),
  },
  timezone: {
    ...text,
    input: () => z.string().trim().max(64).refine(isTimezone, NO_TIMEZONE),
  },
  boolean: {
    input: () => z.boolean(),
    operators: ['eq', 'ne', 'is_null'],
    filterValue: (value) => (value === 'true' || value === 'false' ? value : undefined),
    expects: 'true or false',
    sortable: true,
  },
  date: {
    input: () => day,
    operators: [...ORDERED, 'not_since'],
    filterValue: (value) => (isRelativeDay(value) || day.safeParse(value).success ? value : undefined),
    expects: 'a date such as 2026-01-31, or days such as today, last_7_days or this_month',
    sortable: true,
    searched: identity,
  },
  datetime: {
    input: () => instant.transform(toStoredTimestamp),
    operators: [...ORDERED, 'not_since'],
    // A date without a time stays a date, which means the whole day; a time without an offset gets its zone later.
    filterValue(value) {
      if (isRelativeDay(value)) return value
      if (!instant.safeParse(value).success || toTimestamp(value) === undefined) return undefined
      return isLocal(value) ? value : toTimestamp(value)
    },
    expects:
      'a date or time such as 2026-01-31 or 2026-01-31T09:00:00Z (in a URL, + is written %2B), or days such as today, last_7_days or this_month',
    sortable: true,
    // Only the date is searchable.
    searched: (value) => String(value).slice(0, 10),
  },
  enum: {
    ...text,
    input: (field) => (field.ofOrganization ? trimmed(field) : z.enum(field.values as [string, ...string[]])),
    operators: EQUALITY,
  },
  // Ids are UUIDv7, in the order of creation: filters `id[gt]` and `id[lt]` continue after a record.
  id: { ...reference, operators: [...EQUALITY, 'gt', 'lt'] },
  reference,
  user: {
    ...reference,
    // The signed-in user; resolved by of-caller.ts.
    filterValue: (value) => (value === 'me' ? value : reference.filterValue(value)),
    expects: 'an id, or me',
  },
  address: {
    input: () => {
      const part = z.string().trim().max(255).nullable().optional()
      return z.strictObject(Object.fromEntries(ADDRESS_PARTS.map((name) => [name, part])))
    },
    operators: ['is_null'],
    filterValue: () => undefined,
    expects: 'is_null',
    sortable: false,
    searched: identity,
  },
}
