import { z } from 'zod'

/**
 * The response to a request without `confirm: true`: a preview of its effects; nothing is changed. `object` is the
 * response's `object`, `id` its schema's id, and `shape` the members of the preview.
 */
export function confirmation<Shape extends z.ZodObject>(id: string, object: string, shape: Shape) {
  return {
    schema: z
      .object({
        object: z.literal(object),
        status: z.literal('confirmation_required'),
        confirmed: z.literal(false),
        preview: shape,
      })
      .meta({ id }),
    answer: (preview: z.input<Shape>) => ({
      object,
      status: 'confirmation_required' as const,
      confirmed: false as const,
      preview,
    }),
  }
}
