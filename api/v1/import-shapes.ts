import { z } from 'zod'
import { DELIMITERS } from '../../db/csv/delimiter.ts'
import { ENCODINGS } from '../../db/csv/encoding.ts'
import { IMPORT_STATUSES } from '../../db/files/moves/statuses.ts'
import type { ImportRow } from '../../db/imports/imports.ts'
import { MAX_COLUMNS } from '../../db/imports/upload.ts'
import { entityNames } from '../../db/records/model/kinds/index.ts'

/** Imports as they are asked for and as they are shown. */

const mapping = z
  .record(z.string().max(1_000), z.string().max(200).nullable())
  .refine((columns) => Object.keys(columns).length <= MAX_COLUMNS, `names at most ${MAX_COLUMNS} columns`)
  .describe(
    'Column → field, `address.city`, `custom_fields.tier`, `tags`, for contacts `full_name`, and for contacts and deals `company_name` (the company is found or made); null leaves a column out. Columns that are not named become what was proposed.',
  )

export const newImport = z
  .strictObject({
    entity: z.enum(entityNames).describe('The kind of record that the rows become.'),
    mode: z.enum(['create', 'upsert']).default('create'),
    by: z
      .string()
      .max(100)
      .optional()
      .describe(
        'With upsert: the field by which a record is found: external_id, email of contacts, domain of companies, or a unique custom field.',
      ),
    mapping: mapping.default({}),
    dry_run: z
      .boolean()
      .default(false)
      .describe('Everything is checked and counted, and nothing is written.'),
    delimiter: z.enum(DELIMITERS).optional().describe('Found out where it is left out.'),
    encoding: z.enum(ENCODINGS).optional().describe('Found out where it is left out.'),
  })
  .meta({ id: 'ImportCreate' })

export const startBody = z
  .strictObject({
    mapping: mapping.optional(),
    dry_run: z.boolean().optional().describe('Default: as the import was created, or started last.'),
  })
  .optional()

const actor = z.object({ type: z.string(), id: z.string().nullable() })

export const importSchema = z
  .object({
    object: z.literal('import'),
    id: z.uuid(),
    entity: z.enum(entityNames),
    mode: z.enum(['create', 'upsert']),
    by: z.string().nullable(),
    dry_run: z.boolean(),
    status: z.enum(IMPORT_STATUSES),
    mapping: z
      .record(z.string(), z.string().nullable())
      .describe('What was said of columns; after the start: what each column becomes.'),
    file: z
      .object({
        bytes: z.int(),
        rows: z.int().describe('Below the header.'),
        encoding: z.enum(ENCODINGS),
        delimiter: z.string(),
        columns: z.array(
          z.object({
            name: z.string(),
            proposed: z.string().nullable().describe('What it becomes unless the mapping says otherwise.'),
            samples: z.array(z.string()),
          }),
        ),
        available: z.boolean().describe('False once it has been deleted, 30 days after the import.'),
      })
      .nullable(),
    progress: z.object({
      rows: z.int().describe('Of the file that were dealt with.'),
      created: z.int(),
      updated: z.int(),
      skipped: z.int().describe('Blank, or as the record is already.'),
      failed: z.int().describe('Listed with their reasons by GET …/errors.'),
      line: z.int().describe('On which the next row begins.'),
    }),
    error: z
      .object({ message: z.string(), hint: z.string().optional() })
      .nullable()
      .describe('Why the whole import failed.'),
    created_by: actor,
    created_at: z.date(),
    started_at: z.date().nullable(),
    ended_at: z.date().nullable(),
  })
  .meta({ id: 'Import' })

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
    file: file && {
      bytes: file.bytes,
      rows: file.rows,
      encoding: file.encoding,
      delimiter: file.delimiter,
      columns: file.header.map((name, i) => ({
        name,
        proposed: file.proposed[name] ?? null,
        samples: file.samples[i] ?? [],
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
    error: row.error,
    created_by: row.created_by,
    created_at: row.created_at,
    started_at: row.started_at,
    ended_at: row.ended_at,
  }
}
