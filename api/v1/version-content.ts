import { AppError } from '../../db/model/errors.ts'
import type { VersionContent } from '../../db/workflows/workflows.ts'
import type { Finding, OutsideReferences } from '../../workflows/language/definition.ts'
import { SPEC } from '../../workflows/shared/limits.ts'
import type { Source } from '../compute/tasks.ts'
import { type Author, validated } from './known-values.ts'

/**
 * Validates and compiles a source. A raw definition is also written as YAML, with the text and comments of `base`, the
 * YAML of the version before it, where they mean the same. `workflowId`: it is a version of this workflow. Throws
 * `payload_too_large`, or `workflow_invalid` with the validation result.
 */
export async function compiled(
  request: Author,
  { spec, definition, customFields }: Source,
  { base, workflowId }: { base?: string | null | undefined; workflowId?: string } = {},
): Promise<{ content: VersionContent; warnings: Finding[]; references: OutsideReferences }> {
  if (spec !== undefined && Buffer.byteLength(spec) > SPEC.bytes)
    throw new AppError('payload_too_large', `a spec may have at most ${SPEC.bytes / 1024} KiB`)
  const found = await validated(request, { spec, definition, customFields }, workflowId)
  if (!found.definition || !found.program) {
    const { errors } = found.result
    throw new AppError(
      'workflow_invalid',
      `the workflow has ${errors.length === 1 ? 'an error' : `${errors.length} errors`}: ${errors[0]?.message}`,
      { validation: found.result },
    )
  }
  const { caller, deps } = request
  const content = {
    spec: spec ?? (await deps.compute.writeSpec(caller.organization.id, found.definition, base)) ?? null,
    definition: found.definition,
    program: found.program,
  }
  return { content, warnings: found.result.warnings, references: found.references }
}

/** The name and description in a version. A raw definition can omit both; a spec without a description clears it. */
export function titleOf(
  { definition }: Source,
  content: VersionContent,
): { name?: string; description?: string | null } {
  const { name, description = null } = content.definition
  return {
    ...(definition && definition.name === undefined ? {} : { name }),
    ...(definition && definition.description === undefined ? {} : { description }),
  }
}

export const withName = (content: VersionContent, name: string): VersionContent => ({
  ...content,
  definition: { ...content.definition, name },
})

/**
 * The members of a title that differ from the previous version. A client may save a spec that it read before a rename:
 * the unchanged title then keeps the rename.
 */
export function changedTitle(
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
