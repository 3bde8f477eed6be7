import { AppError } from '../../db/errors.ts'
import { programsOf } from '../../db/incoming/mapping/patterns.ts'
import { ComputeError, Pool } from '../../workflows/compute/pool.ts'
import { countValues } from '../../workflows/definition/measure.ts'
import { PATTERN } from '../../workflows/limits.ts'
import { type Body, type Mapping, type Source, tasks } from './tasks.ts'

/**
 * What takes less than some 10 ms runs at once: below this, to hand it to a thread costs more than it saves.
 * Validation takes 2 to 3 ms for each KiB of a spec, parsing and mapping of a body up to 1 ms for each KiB.
 */
const INLINE = {
  specCharacters: 4_096,
  definitionValues: 300,
  bodyBytes: 8_192,
  /** Instructions of patterns × bytes. */
  patternSteps: 200_000,
} as const

/** Computations that a tenant chooses, for the handlers of the API. */
export class Compute {
  private readonly pool = new Pool<typeof tasks>({ module: new URL('./tasks.ts', import.meta.url) })

  /** Throws `invalid_request` where it is too expensive. */
  validate(organizationId: string, source: Source): Promise<ReturnType<typeof tasks.validate>> {
    const { spec, definition } = source
    const small =
      spec === undefined
        ? countValues(definition, INLINE.definitionValues) <= INLINE.definitionValues
        : spec.length <= INLINE.specCharacters
    return small
      ? Promise.resolve(tasks.validate(source))
      : this.run(organizationId, 'the workflow', 'validate', source)
  }

  /** The payload of a webhook and what its mapping makes of it. Throws what `parseBody` throws, too. */
  async mapBody(organizationId: string, body: Body, mapping: Mapping) {
    const { bytes } = body
    const { field_mapping, target_entity } = mapping
    const programs = field_mapping.mode === 'manual' ? programsOf(field_mapping.rules) : 0
    const steps = programs * Math.min(bytes.length, PATTERN.text)
    const small = bytes.length <= INLINE.bodyBytes && steps <= INLINE.patternSteps
    const values = [body, { field_mapping, target_entity }] as const
    const done = small
      ? tasks.mapBody(...values)
      : await this.run(organizationId, 'the body, with the patterns of the mapping,', 'mapBody', ...values)
    if ('refused' in done) throw new AppError(done.refused.type, done.refused.message, done.refused.details)
    return done
  }

  close(): Promise<void> {
    return this.pool.close()
  }

  private async run<Name extends keyof typeof tasks>(
    organizationId: string,
    what: string,
    name: Name,
    ...values: Parameters<(typeof tasks)[Name]>
  ): Promise<ReturnType<(typeof tasks)[Name]>> {
    try {
      return (await this.pool.run(organizationId, name, ...values)) as ReturnType<(typeof tasks)[Name]>
    } catch (error) {
      if (!(error instanceof ComputeError)) throw error
      if (error.limit === 'waiting')
        throw new AppError('unavailable', 'too much is being computed for this organization', {
          retry_after: 2,
        })
      throw new AppError('invalid_request', `${what} is too expensive: ${error.message}`, {
        hint: 'make it smaller, or divide it',
      })
    }
  }
}
