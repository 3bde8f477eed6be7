import { z } from 'zod'

const ID = { id: z.uuid() }
export const DELETED_AT = { deleted_at: z.iso.datetime() }

/** The response of a deletion. `shape` has the members that identify the deleted object, and any others. */
export const deletion = <const O extends string, S extends z.ZodRawShape = typeof ID>(
  object: O,
  shape: S = ID as never,
  component = ['deleted', ...object.split('_')]
    .map((word) => word[0]!.toUpperCase() + word.slice(1))
    .join(''),
) => ({
  status: 200 as const,
  schema: z.object({ object: z.literal(object), ...shape, deleted: z.literal(true) }).meta({ id: component }),
})
