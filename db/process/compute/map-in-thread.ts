import { PATTERN } from '../../../workflows/shared/limits.ts'
import { AppError } from '../../model/errors.ts'
import {
  type Body,
  type MappedPayload,
  type MappedRequest,
  type Mapping,
  mapBody,
  mapRequest,
  proposeFrom,
  type Refused,
  type RequestConfig,
  type tasks,
} from '../../model/incoming/map-body.ts'
import { programsOf } from '../../model/incoming/mapping/patterns.ts'
import type { Proposal } from '../../model/incoming/mapping/propose.ts'
import type { FieldMapping, TargetKind } from '../../model/incoming/types.ts'
import { ComputeError, type Pool } from './pool.ts'

/** What takes less than some 10 ms: to hand it to a thread costs more than it saves. Up to 1 ms for each KiB. */
const INLINE = {
  body: 8_192,
  /** Instructions of patterns × bytes. */
  patternSteps: 200_000,
} as const

/** Those of a pool that has more tasks, too. */
type Threads = Pick<Pool<typeof tasks>, 'run'>

/** The payload and what its mapping makes of it, computed at once or in a thread. Throws what `parseBody` throws, too. */
export async function mapIn(
  threads: Threads,
  organizationId: string,
  body: Body,
  { field_mapping, kind, deduplication, listeners, secret_fields, sender, also_writes }: Mapping,
): Promise<MappedPayload> {
  const mapping = { field_mapping, kind, deduplication, listeners, secret_fields, sender, also_writes }
  const values = [body, mapping] as const
  return accepted(
    isSmall(body, { field_mapping, listeners })
      ? mapBody(...values)
      : await withinLimits(MAPPING, () => threads.run(organizationId, 'mapBody', ...values)),
  )
}

/** The same for a request, which may be a batch of records. */
export async function mapRequestIn(
  threads: Threads,
  organizationId: string,
  body: Body,
  webhook: Required<RequestConfig>,
): Promise<MappedRequest> {
  const { field_mapping, kind, deduplication, workflow_inputs, listeners, secret_fields } = webhook
  const { sender, also_writes } = webhook
  const settings = { field_mapping, kind, deduplication, workflow_inputs, listeners, secret_fields }
  const values = [body, { ...settings, sender, also_writes }] as const
  return accepted(
    isSmall(body, { field_mapping, listeners }) && !mayBeBatch(body)
      ? mapRequest(...values)
      : await withinLimits(MAPPING, () => threads.run(organizationId, 'mapRequest', ...values)),
  )
}

/** Whether a body has many objects: what is around a list is read again for each of its records. */
const mayBeBatch = ({ content }: Body): boolean =>
  Buffer.from(content).toString('latin1').split('{').length > MANY_OBJECTS

const MANY_OBJECTS = 30

const MAPPING = 'the body, with the patterns of the mapping,'

/** A text of a batch is read once for each pattern of each of its records, in total as often as one long text. */
function isSmall(
  { content: { length } }: Body,
  { field_mapping: mapping, listeners }: Pick<Mapping, 'field_mapping' | 'listeners'>,
): boolean {
  if (usesLiquid(mapping)) return false
  const programs = (mapping.mode === 'manual' ? programsOf(mapping.rules) : 0) + programsOf(listeners)
  return length <= INLINE.body && programs * Math.min(length, PATTERN.text) <= INLINE.patternSteps
}

/** Filters have a limit of work each, which together is more than a request may take of the process. */
const usesLiquid = (mapping: FieldMapping): boolean =>
  mapping.mode === 'manual' &&
  mapping.rules.some(({ transforms }) => transforms.some(({ type }) => type === 'liquid'))

/** What `proposeFrom` takes besides the sample. */
export type ProposalSettings = [kind: TargetKind, secretFields: string[], sender: string | null]

/** A mapping proposed from a sample, computed as `mapIn` does. */
export async function proposeIn(
  threads: Threads,
  organizationId: string,
  body: Body,
  ...settings: ProposalSettings
): Promise<Proposal> {
  if (body.content.length <= INLINE.body) return accepted(proposeFrom(body, ...settings))
  return accepted(
    await withinLimits('the sample', () => threads.run(organizationId, 'proposeFrom', body, ...settings)),
  )
}

/** Throws the AppError that a task has returned. */
export function accepted<T extends object>(done: T | { refused: Refused }): T {
  if (!('refused' in done)) return done
  const { type, message, details } = done.refused as Refused
  throw new AppError(type, message, details)
}

/** Throws `invalid_request` for a computation that is too expensive, and `unavailable` if too many wait. */
export async function withinLimits<T>(what: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
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
