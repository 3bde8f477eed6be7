import { AppError } from '../../db/errors.ts'
import type { VersionContent } from '../../db/workflows/workflows.ts'
import type { Finding } from '../../workflows/definition/types.ts'
import { SPEC } from '../../workflows/limits.ts'
import type { Compute } from '../compute/compute.ts'
import type { Source } from '../compute/tasks.ts'

/** What will be stored. Throws `payload_too_large`, or `workflow_invalid` with the whole result. */
export async function checked(
  compute: Compute,
  organizationId: string,
  { spec, definition }: Source,
): Promise<{ content: VersionContent; warnings: Finding[] }> {
  if (spec !== undefined && Buffer.byteLength(spec) > SPEC.bytes)
    throw new AppError('payload_too_large', `a spec may have ${SPEC.bytes / 1024} KiB at most`)
  const validated = await compute.validate(organizationId, { spec, definition })
  if (!validated.definition || !validated.plan) {
    const { errors } = validated.result
    throw new AppError(
      'workflow_invalid',
      `the workflow has ${errors.length === 1 ? 'an error' : `${errors.length} errors`}: ${errors[0]?.message}`,
      { validation: validated.result },
    )
  }
  const content = {
    spec: spec ?? null,
    definition: validated.definition,
    plan: validated.plan,
  }
  return { content, warnings: validated.result.warnings }
}

/** What a version says of the workflow itself. A raw definition need not say anything; a spec without a description has none. */
export function saidBy(
  { definition }: Source,
  content: VersionContent,
): { name?: string; description?: string | null } {
  const { name, description = null } = content.definition
  return {
    ...(definition && definition.name === undefined ? {} : { name }),
    ...(definition && definition.description === undefined ? {} : { description }),
  }
}

export const keepName = (content: VersionContent, name: string): VersionContent => ({
  ...content,
  definition: { ...content.definition, name },
})

/**
 * The name and description that a saved version gives its workflow: where it says otherwise than the version before.
 * So a spec that was read before a renaming, and is sent back, does not undo it.
 */
export function retitled(
  { name, description }: { name?: string; description?: string | null },
  before: { definition: { name: string; description?: string | undefined } },
): { name?: string; description?: string | null } {
  return {
    ...(name !== undefined && name !== before.definition.name ? { name } : {}),
    ...(description !== undefined && description !== (before.definition.description ?? null)
      ? { description }
      : {}),
  }
}
