import type { Split } from '../../db/knowledge/documents.ts'
import { AppError } from '../../db/model/errors.ts'
import type { Body, Mapping, RequestConfig } from '../../db/model/incoming/map-body.ts'
import type { FileType } from '../../db/model/knowledge/files/extract.ts'
import { passagesOf } from '../../db/model/knowledge/passages.ts'
import { withComputed } from '../../db/process/compute/computed.ts'
import {
  mapIn,
  mapRequestIn,
  type ProposalSettings,
  proposeIn,
  withinLimits,
} from '../../db/process/compute/map-in-thread.ts'
import { Pool } from '../../db/process/compute/pool.ts'
import type { Definition } from '../../workflows/language/definition.ts'
import { countValues } from '../../workflows/language/measure.ts'
import type { DocumentFormat } from '../../workflows/shared/knowledge.ts'
import { type Source, tasks } from './tasks.ts'

/**
 * Work of up to some 10 ms runs in the event loop: below that, a thread costs more than it saves. Validation takes 2 to
 * 3 ms for each KiB of a spec, dividing a document up to 0.2 ms.
 */
const INLINE = {
  specCharacters: 4_096,
  definitionValues: 300,
  knownValues: 3_000,
  documentCharacters: 65_536,
} as const

type Threads = Pick<Pool<typeof tasks>, 'run' | 'close'>
/** The threads of a process. `onTask` is called with the name of each task that one gets. */
export const createThreads = (onTask?: (name: string) => void): Threads =>
  new Pool<typeof tasks>({ module: new URL('./tasks.ts', import.meta.url), onTask })

type Task = [owner: string, name: never, ...values: never[]]

/** Computations whose cost a tenant controls, for the handlers of the API. */
export class Compute {
  private readonly threads: Threads

  constructor(threads: Threads = createThreads()) {
    this.threads = threads
  }

  /** Has a transaction compute: what a thread must do is done before the transaction, which begins again with it. */
  before<T>(transact: (compute: Compute) => Promise<T>): Promise<T> {
    const run = this.threads.run.bind(this.threads) as unknown as (...task: Task) => Promise<never>
    return withComputed(run, (computed) => {
      const known = async (...task: Task) => computed(...task)
      return transact(new Compute({ run: known as unknown as Threads['run'], close: async () => {} }))
    })
  }

  /** Throws `invalid_request` if it is too expensive. */
  validate(organizationId: string, source: Source): Promise<ReturnType<typeof tasks.validate>> {
    const { spec, definition, known } = source
    const isShort =
      spec === undefined
        ? countValues(definition, INLINE.definitionValues) <= INLINE.definitionValues
        : spec.length <= INLINE.specCharacters
    const small = isShort && (!known || countValues(known, INLINE.knownValues) <= INLINE.knownValues)
    return small
      ? Promise.resolve(tasks.validate(source))
      : withinLimits('the workflow', () => this.threads.run(organizationId, 'validate', source))
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
    return withinLimits('the workflow', () => this.threads.run(organizationId, 'writeSpec', definition, base))
  }

  /** The cases of a test of a workflow, from their YAML. Throws as `validate`. */
  async parseCases(organizationId: string, text: string): Promise<ReturnType<typeof tasks.parseCases>> {
    if (text.length <= INLINE.specCharacters) return tasks.parseCases(text)
    return withinLimits('the text of the cases', () => this.threads.run(organizationId, 'parseCases', text))
  }

  /** The unified diff of two named texts; undefined if they differ too much. Throws as `writeSpec`. */
  async diffTexts(
    organizationId: string,
    ...texts: Parameters<typeof tasks.diffTexts>
  ): Promise<string | undefined> {
    const small = texts.every(({ text }) => text.length <= INLINE.specCharacters)
    if (small) return tasks.diffTexts(...texts)
    return withinLimits('the difference', () => this.threads.run(organizationId, 'diffTexts', ...texts))
  }

  /** The parsed payload of a webhook and the result of its mapping. Throws the errors of `parseBody` too. */
  mapBody(organizationId: string, body: Body, mapping: Mapping) {
    return mapIn(this.threads, organizationId, body, mapping)
  }

  /** The same for a request, which may be a batch of records. */
  mapRequest(organizationId: string, body: Body, webhook: Required<RequestConfig>) {
    return mapRequestIn(this.threads, organizationId, body, webhook)
  }

  /** A mapping proposed from a sample. Throws the errors of `parseBody` too. */
  propose(organizationId: string, body: Body, ...settings: ProposalSettings) {
    return proposeIn(this.threads, organizationId, body, ...settings)
  }

  /**
   * Has a transaction divide documents into passages; a long one in a thread, as `before` does. Throws
   * `invalid_request` if that is too expensive.
   */
  withPassages<T>(organizationId: string, transact: (split: Split) => Promise<T>): Promise<T> {
    return withComputed(
      (body: string, format: DocumentFormat) =>
        withinLimits('the document', () => this.threads.run(organizationId, 'passagesOf', body, format)),
      (computed) =>
        transact((body, format) =>
          body.length <= INLINE.documentCharacters ? passagesOf(body, format) : computed(body, format),
        ),
    )
  }

  /** The text of a file, extracted in a thread. Throws `invalid_request` if it has none, or is too expensive. */
  async extract(organizationId: string, bytes: Uint8Array, type: FileType) {
    const extracted = await withinLimits('the file', () =>
      this.threads.run(organizationId, 'extract', bytes, type),
    )
    if ('refused' in extracted) throw new AppError('invalid_request', extracted.refused)
    return extracted
  }

  close(): Promise<void> {
    return this.threads.close()
  }
}
