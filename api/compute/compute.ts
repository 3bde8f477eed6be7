import type { BatchSettings } from '../../db/model/incoming/batch.ts'
import type { Body, Mapping, tasks as mappingTasks } from '../../db/model/incoming/map-body.ts'
import { type Passage, passagesOf } from '../../db/model/knowledge/passages.ts'
import { mapIn, mapRequestIn, proposeIn, withinLimits } from '../../db/process/compute/map-in-thread.ts'
import { Pool } from '../../db/process/compute/pool.ts'
import type { Definition } from '../../workflows/language/definition.ts'
import { countValues } from '../../workflows/language/measure.ts'
import type { DocumentFormat } from '../../workflows/shared/knowledge.ts'
import { type Source, tasks } from './tasks.ts'

/**
 * Work of up to some 10 ms runs in the event loop: below that, a thread costs more than it saves. Validation takes 2 to
 * 3 ms for each KiB of a spec, dividing a document up to 0.2 ms.
 */
const INLINE = { specCharacters: 4_096, definitionValues: 300, documentCharacters: 65_536 } as const

/** Computations whose cost a tenant controls, for the handlers of the API. */
export class Compute {
  private readonly pool = new Pool<typeof tasks>({ module: new URL('./tasks.ts', import.meta.url) })

  /** Throws `invalid_request` if it is too expensive. */
  validate(organizationId: string, source: Source): Promise<ReturnType<typeof tasks.validate>> {
    const { spec, definition } = source
    const small =
      spec === undefined
        ? countValues(definition, INLINE.definitionValues) <= INLINE.definitionValues
        : spec.length <= INLINE.specCharacters
    return small
      ? Promise.resolve(tasks.validate(source))
      : withinLimits('the workflow', () => this.pool.run(organizationId, 'validate', source))
  }

  /** The YAML of a definition, with the text and comments of `base`. Throws `invalid_request` if it is too expensive. */
  async writeSpec(
    organizationId: string,
    definition: Definition,
    base?: string | null,
  ): Promise<string | undefined> {
    const small =
      (base?.length ?? 0) <= INLINE.specCharacters &&
      countValues(definition, INLINE.definitionValues) <= INLINE.definitionValues
    if (small) return tasks.writeSpec(definition, base)
    return withinLimits('the workflow', () => this.pool.run(organizationId, 'writeSpec', definition, base))
  }

  /** The unified diff of two named texts; undefined if they differ too much. Throws as `writeSpec`. */
  async diffTexts(
    organizationId: string,
    ...texts: Parameters<typeof tasks.diffTexts>
  ): Promise<string | undefined> {
    const small = texts.every(({ text }) => text.length <= INLINE.specCharacters)
    if (small) return tasks.diffTexts(...texts)
    return withinLimits('the difference', () => this.pool.run(organizationId, 'diffTexts', ...texts))
  }

  /** The parsed payload of a webhook and the result of its mapping. Throws the errors of `parseBody` too. */
  mapBody(organizationId: string, body: Body, mapping: Mapping) {
    return mapIn(this.pool as unknown as Pool<typeof mappingTasks>, organizationId, body, mapping)
  }

  /** The same for a request, which may be a batch of records. */
  mapRequest(organizationId: string, body: Body, settings: Required<BatchSettings>) {
    return mapRequestIn(this.pool as unknown as Pool<typeof mappingTasks>, organizationId, body, settings)
  }

  /** A mapping proposed from a sample. Throws the errors of `parseBody` too. */
  propose(organizationId: string, body: Body, kind: Mapping['kind']) {
    return proposeIn(this.pool as unknown as Pool<typeof mappingTasks>, organizationId, body, kind)
  }

  /** The passages of a document. Throws `invalid_request` if it is too expensive. */
  async passages(organizationId: string, body: string, format: DocumentFormat): Promise<Passage[]> {
    if (body.length <= INLINE.documentCharacters) return passagesOf(body, format)
    return withinLimits('the document', () => this.pool.run(organizationId, 'passagesOf', body, format))
  }

  close(): Promise<void> {
    return this.pool.close()
  }
}
