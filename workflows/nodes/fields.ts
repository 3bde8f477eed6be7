import { z } from 'zod'
import { parseDuration } from '../language/duration.ts'

/** Schemas that the configs of several node types share. */

/** A duration such as `5m`, between `min` and `max`, both durations too. */
export const duration = (min: string, max: string) =>
  z
    .string()
    .refine((text) => {
      const milliseconds = parseDuration(text)
      if (milliseconds === undefined) return false
      return milliseconds >= parseDuration(min)! && milliseconds <= parseDuration(max)!
    }, `must be a duration between ${min} and ${max}, such as 500ms, 30s, 5m, 2h or 1d`)
    .meta({ examples: ['5m'] })

/** A name that the author chooses and that becomes a handle. */
export const handleName = z
  .string()
  .regex(/^[a-z_][a-z0-9_]{0,63}$/, 'must be lower case letters, digits and underscores')
