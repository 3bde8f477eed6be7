import { z } from 'zod'

/**
 * The answer to a request without `confirm: true`: what it would do. Nothing has happened. `object` names the answer,
 * `id` its schema, and `shape` is the preview.
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
