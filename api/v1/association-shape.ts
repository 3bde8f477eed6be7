import { z } from 'zod'

/** What a related record says of its link. */
export const associationContent = z
  .object({
    label: z.string().nullable().describe('The role of the other record.'),
    properties: z.record(z.string(), z.unknown()),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'AssociationContent' })
