import { z } from 'zod'
import { getRun, type RunDetails, type RunEnd } from '../../db/runs/views.ts'
import { REACHES } from '../../workflows/interpret/preview.ts'
import { CLEANUP_ROLES, EFFECT_CLASSES, type Program } from '../../workflows/language/definition.ts'
import { RUN_STATUSES } from '../../workflows/shared/statuses.ts'
import type { ApiConfig } from '../config.ts'
import type { RouteRequest } from '../http/route.ts'
import { reachesOutside, variableWarnings } from './effect-warnings.ts'
import { linksOf, runLinks } from './run-links.ts'

/** The preview and the response of all operations that start a run. */

export const startedRun = z
  .object({
    object: z.literal('run'),
    status: z.enum(RUN_STATUSES),
    run_id: z.uuid(),
    workflow_id: z.uuid(),
    workflow_version: z.int(),
    existing: z.literal(true).optional().meta({
      description: 'The run was open before, with the same `key`: no other one was started.',
    }),
    outputs: z.record(z.string(), z.unknown()).nullable().optional(),
    error: z.record(z.string(), z.unknown()).nullable().optional(),
    links: runLinks,
  })
  .meta({ id: 'StartedRun' })

export const previewNode = z
  .object({
    id: z.string(),
    type: z.string(),
    title: z.string(),
    effect: z.enum(EFFECT_CLASSES),
    role: z.enum(CLEANUP_ROLES).optional().meta({
      description: 'Only of a node that runs once the outcome of the run is decided.',
    }),
    undoes: z.string().optional().meta({ description: 'Only of an `undo` node: the node that it undoes.' }),
  })
  .meta({ id: 'RunPreviewNode' })

/** A node as a run would reach it with the given inputs. */
export const plannedNode = previewNode
  .extend({
    reach: z.enum(REACHES).optional().meta({
      description:
        'Whether the node runs with these inputs. `may_run`: that depends on a result that is not known yet. Absent beyond the first 200 nodes.',
    }),
    config: z.unknown().optional().meta({
      description:
        'Rendered as far as the values are known, with secrets masked; a placeholder without a value stays as it is written. In a loop, of its first item.',
    }),
    unknown: z
      .array(z.string())
      .optional()
      .meta({
        description: 'The paths whose values are not known yet.',
        examples: [['nodes.find.output.id']],
      }),
    calls: z
      .array(z.string())
      .optional()
      .meta({
        description:
          'What would be read, written and sent, and to whom, up to the first call whose result the node needs. Absent if a value is not known yet.',
        examples: [['sending a mail to ada@example.com']],
      }),
  })
  .meta({ id: 'PlannedNode' })

type PreviewNode = z.output<typeof previewNode>

export const previewNodes = ({ nodes }: Program, ids: string[]): PreviewNode[] =>
  ids.map((name) => {
    const { id, type, title, effect, role, undoes } = nodes[name]!
    return { id, type, title, effect, ...(role && { role }), ...(undoes !== undefined && { undoes }) }
  })

/** Warnings about these nodes of a program. */
export function warningsOf(program: Program, ids: string[], config: ApiConfig): string[] {
  const nodes = ids.map((id) => program.nodes[id]!)
  const outside = nodes.filter(reachesOutside).map((node) => node.title)
  return [
    ...(outside.length > 0 ? [`Has effects outside the service: ${outside.join(', ')}.`] : []),
    ...variableWarnings(nodes, config),
  ]
}

export type StartRequest = Pick<
  RouteRequest,
  'caller' | 'headers' | 'deps' | 'signal' | 'tenant' | 'oneStatement' | 'setHeader' | 'commit' | 'asPreview'
>

/**
 * Responds with a queued run: at once, or after its end, at most `seconds` later. `open`: it was there before.
 */
export async function answerStarted(
  request: StartRequest,
  runId: string,
  workflow: { id: string; version: number },
  seconds: number,
  open?: { status: RunDetails['status'] },
): Promise<unknown> {
  const answer = (state: Pick<RunDetails, 'status'> & Partial<RunDetails>) => ({
    object: 'run',
    status: state.status,
    run_id: runId,
    workflow_id: workflow.id,
    workflow_version: workflow.version,
    ...(open ? { existing: true } : {}),
    ...(state.outputs ? { outputs: state.outputs } : {}),
    ...(state.error ? { error: state.error } : {}),
    links: linksOf(runId, request.deps.config),
  })
  const { status } = open ?? { status: 'queued' as const }
  if (seconds === 0) return answer({ status })
  await request.commit(answer({ status }))
  request.setHeader('Preference-Applied', `wait=${seconds}`)
  return answer(await waitForEnd(request, runId, seconds))
}

/** The run at its end, or as it is after `seconds`. */
async function waitForEnd(
  { deps, caller, tenant, signal }: StartRequest,
  runId: string,
  seconds: number,
): Promise<RunEnd> {
  const read = () => deps.runEnds.read({ organizationId: caller.organization.id, id: runId })
  const ended = await deps.runEnds.wait(runId, seconds * 1_000, signal, read)
  return ended ?? tenant((tx) => getRun(tx, runId))
}
