import { z } from 'zod'
import { type ImportRow, PREVIEW_ROWS } from '../../db/imports/imports.ts'
import { DATE_ORDERS, DECIMALS, type FoundFormat } from '../../db/model/csv/column-format.ts'
import { ENCODINGS } from '../../db/model/csv/encoding.ts'
import { SHARED_SIGNS, type SharedSign } from '../../db/model/csv/money-cell.ts'
import { IMPORT_STATUSES } from '../../db/model/files/statuses.ts'
import { SOURCES } from '../../db/model/imports/presets.ts'
import { kindNames } from '../../db/model/records/kinds/index.ts'
import { OUTCOMES } from '../../db/model/records/pipelines/pipeline.ts'
import { actor } from '../../db/model/records/schemas.ts'
import { isCurrency } from '../../db/model/records/values.ts'
import { DELIMITERS } from '../../workflows/shared/csv/delimiter.ts'
import { CSV } from '../../workflows/shared/limits.ts'
import { isPhoneCountry } from '../../workflows/shared/phone.ts'
import { isTimezone, NO_TIMEZONE } from '../../workflows/shared/timezone.ts'

/** The shapes of imports, and their presenter. */

const mapping = z
  .record(z.string().max(1_000), z.string().max(200).nullable())
  .refine((columns) => Object.keys(columns).length <= CSV.columns, `names at most ${CSV.columns} columns`)
  .describe(
    'The field of each column: a field name, `address.city`, `custom_fields.tier`, `tags`, for contacts `full_name`, `opted_out` and `opted_in` (a yes or a no, a status or a date: they set `do_not_contact` and never clear it; several columns may have them), `emails` and `phones` (several in a cell or in several columns: others are `other_emails`, `other_phones`), for contacts and deals `company_name` (finds or creates the company), `company_external_id`, `company_domain`, `contact_email` and so on (find the record). `owner_id` and other users may be emails or names. null skips the column. Columns without an entry get the proposed field.',
  )

const formats = z
  .record(
    z.string().max(1_000),
    z.strictObject({
      decimal: z.enum(DECIMALS).optional().describe('The decimal separator of numbers and amounts.'),
      date: z.enum(DATE_ORDERS).optional().describe('The order of day and month in 10/12/2024.'),
    }),
  )
  .refine((columns) => Object.keys(columns).length <= CSV.columns, `names at most ${CSV.columns} columns`)
  .describe(
    'How the values of a column are written, where `file.columns[].format` leaves it open or is wrong. Other columns are read as all of their values show.',
  )

const values = z
  .record(z.string().max(1_000), z.record(z.string().max(1_000), z.string().max(1_000).nullable()))
  .refine((columns) => Object.keys(columns).length <= CSV.columns, `names at most ${CSV.columns} columns`)
  .describe(
    'What values of a column mean, where `file.columns[].values` has no proposal or a wrong one: `{"Stage": {"Hot": "proposal"}, "Owner": {"J. Doe": "<user id or email>", "Left": null}}`; null leaves the field empty.',
  )

const currencies = z
  .strictObject(
    Object.fromEntries(
      Object.keys(SHARED_SIGNS).map((name) => [
        name,
        z.string().toUpperCase().refine(isCurrency, 'is not an ISO 4217 currency').optional(),
      ]),
    ) as Record<SharedSign, z.ZodOptional<z.ZodString>>,
  )
  .describe(
    'The currency of signs that several have, `$`, `¥` and `kr`: `{"dollar": "USD"}`. Default: that of the organization, if the sign is one of it; else amounts with the sign are refused.',
  )

const timeZone = z
  .string()
  .max(64)
  .refine(isTimezone, NO_TIMEZONE)
  .describe('The time zone of times without an offset. Default: that of the organization.')

const country = z
  .string()
  .trim()
  .toUpperCase()
  .refine(isPhoneCountry, 'must be an ISO 3166 code of two letters, such as DE')
  .describe('The country of phone numbers without a country code. Default: that of the organization.')

const createStages = z
  .boolean()
  .describe(
    'For deals: creates the stages and pipelines that rows name and the organization does not have, as `file.columns[].values[].creates` shows.',
  )

export const newImport = z
  .strictObject({
    entity: z.enum(kindNames).describe('The kind of the records.'),
    mode: z.enum(['create', 'upsert']).default('create'),
    by: z
      .string()
      .max(100)
      .optional()
      .describe(
        'The key of an upsert: `id`, `external_id`, `email` of contacts, `domain` of companies, or a unique custom field.',
      ),
    mapping: mapping.default({}),
    formats: formats.default({}),
    currencies: currencies.default({}),
    values: values.default({}),
    time_zone: timeZone.optional(),
    country: country.optional(),
    create_stages: createStages.default(false),
    dry_run: z.boolean().default(false).describe('Checks and counts the rows without writing.'),
    delimiter: z.enum(DELIMITERS).optional().describe('Default: detected.'),
    encoding: z.enum(ENCODINGS).optional().describe('Default: detected.'),
  })
  .meta({ id: 'ImportCreate' })

export const startBody = z
  .strictObject({
    mapping: mapping.optional(),
    formats: formats.optional(),
    currencies: currencies.optional(),
    values: values.optional(),
    time_zone: timeZone.optional(),
    country: country.optional(),
    create_stages: createStages.optional(),
    dry_run: z
      .boolean()
      .optional()
      .describe('Default: the value of the previous start, else of the creation.'),
  })
  .meta({ id: 'ImportStart' })
  .optional()

/** Why an import, an export or a bulk job failed. */
export const jobError = z
  .object({ message: z.string(), hint: z.string().optional() })
  .meta({ id: 'JobError' })

export const importSchema = z
  .object({
    object: z.literal('import'),
    id: z.uuid(),
    entity: z.enum(kindNames),
    mode: z.enum(['create', 'upsert']),
    by: z.string().nullable(),
    dry_run: z.boolean(),
    status: z.enum(IMPORT_STATUSES),
    mapping: z
      .record(z.string(), z.string().nullable())
      .describe('The requested mapping; after the start, the field of each column.'),
    time_zone: timeZone.nullable(),
    country: country.nullable(),
    create_stages: z.boolean(),
    file: z
      .object({
        bytes: z.int(),
        rows: z.int().describe('Rows without the header.'),
        encoding: z.enum(ENCODINGS),
        delimiter: z.string(),
        source: z.enum(SOURCES).nullable().describe('The system whose export it is, by its header.'),
        columns: z.array(
          z
            .object({
              name: z.string(),
              proposed: z.string().nullable().describe('The field that the column gets without a mapping.'),
              dropped: z
                .string()
                .nullable()
                .describe('Why it has no field, so that its values are not imported.'),
              samples: z.array(z.string()),
              values: z
                .array(
                  z.object({
                    value: z.string(),
                    rows: z.int(),
                    proposed: z
                      .string()
                      .nullable()
                      .describe('null: rows with it are refused, unless `values` says it.'),
                    creates: z
                      .object({
                        name: z.string(),
                        label: z.string(),
                        outcome: z.enum(OUTCOMES),
                        probability: z.int(),
                      })
                      .optional()
                      .describe('The stage that `create_stages` creates.'),
                  }),
                )
                .nullable()
                .describe('For a column of choices or users with at most 100 different values.'),
              format: z
                .object({
                  decimal: z.enum(DECIMALS).nullable(),
                  date: z.enum(DATE_ORDERS).nullable(),
                  open: z
                    .array(z.enum(['decimal', 'date']))
                    .describe(
                      'What ambiguous values leave open: rows with such a value are refused, unless `formats` says it.',
                    ),
                })
                .describe(
                  'How its numbers and dates are written, decided by all of its values or by `formats`.',
                ),
            })
            .meta({ id: 'ImportColumn' }),
        ),
        available: z.boolean().describe('Whether the file is still stored. It is deleted after 30 days.'),
      })
      .meta({ id: 'ImportFile' })
      .nullable(),
    progress: z
      .object({
        rows: z.int().describe('Processed rows.'),
        created: z.int(),
        updated: z.int(),
        skipped: z.int().describe('Empty rows, and rows equal to their record.'),
        failed: z.int().describe('Failed rows, listed by `GET …/errors`.'),
        line: z.int().describe('The line of the next row.'),
      })
      .meta({ id: 'ImportProgress' }),
    preview: z
      .array(
        z.object({
          row: z.int(),
          line: z.int(),
          action: z.enum(['created', 'updated', 'skipped']),
          record_id: z.uuid().nullable(),
          changes: z
            .record(z.string(), z.unknown())
            .describe('`from` and `to` of each field that would change; of a new record its values.'),
        }),
      )
      .nullable()
      .describe(`What the first ${PREVIEW_ROWS} valid rows of a dry run would change.`),
    error: jobError.nullable(),
    created_by: actor,
    created_at: z.date(),
    started_at: z.date().nullable(),
    ended_at: z.date().nullable(),
  })
  .meta({ id: 'Import' })

function presentFormat({ decimal, date, open = [] }: FoundFormat) {
  const format = { decimal: decimal ?? null, date: date ?? null }
  return { ...format, open: open.filter((what) => format[what] === null) }
}

/** A column without a field: by the proposal, or because the mapping says so. */
function droppedOf({ targets, mapping, file }: ImportRow, column: string): string | null {
  const chosen = targets ?? mapping
  if (!Object.hasOwn(chosen, column)) return file?.dropped?.[column] ?? null
  return chosen[column] === null ? (file?.dropped?.[column] ?? 'the mapping skips it') : null
}

export function presentImport(row: ImportRow): z.input<typeof importSchema> {
  const { file } = row
  return {
    object: 'import',
    id: row.id,
    entity: row.entity,
    mode: row.mode,
    by: row.upsert_by,
    dry_run: row.dry_run,
    status: row.status,
    mapping: row.targets ?? row.mapping,
    time_zone: row.time_zone,
    country: row.country,
    create_stages: row.create_stages,
    file: file && {
      bytes: file.bytes,
      rows: file.rows,
      encoding: file.encoding,
      delimiter: file.delimiter,
      source: file.source ?? null,
      columns: file.header.map((name, i) => ({
        name,
        proposed: file.proposed[name] ?? null,
        dropped: droppedOf(row, name),
        values: file.meant?.[i] ?? null,
        samples: file.samples[i] ?? [],
        format: presentFormat({ ...file.formats?.[i], ...row.formats[name] }),
      })),
      available: row.upload_id !== null,
    },
    progress: {
      rows: row.rows_read,
      created: row.rows_created,
      updated: row.rows_updated,
      skipped: row.rows_skipped,
      failed: row.rows_failed,
      line: row.next_line,
    },
    preview: row.preview,
    error: row.error,
    created_by: row.created_by,
    created_at: row.created_at,
    started_at: row.started_at,
    ended_at: row.ended_at,
  }
}
