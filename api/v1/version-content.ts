import { AppError } from '../../db/model/errors.ts'
import type { VersionContent } from '../../db/workflows/workflows.ts'
import type { Finding, OutsideReferences } from '../../workflows/language/definition.ts'
import { SPEC } from '../../workflows/shared/limits.ts'
import type { Compute } from '../compute/compute.ts'
import type { Source } from '../compute/tasks.ts'

/**
 * Validates and compiles a source. A raw definition is also written as YAML, with the text and comments of `base`, the
 * YAML of the version before it, where they mean the same. Throws `payload_too_large`, or
 * `workflow_invalid` with the validation result.
 */
export async function compiled(
  compute: Compute,
  organizationId: string,
  { spec, definition, customFields }: Source,
  base?: string | null,
): Promise<{ content: VersionContent; warnings: Finding[]; references: OutsideReferences }> {
  if (spec !== undefined && Buffer.byteLength(spec) > SPEC.bytes)
    throw new AppError('payload_too_large', `a spec may have at most ${SPEC.bytes / 1024} KiB`)
  const validated = await compute.validate(organizationId, { spec, definition, customFields })
  if (!validated.definition || !validated.program) {
    const { errors } = validated.result
    throw new AppError(
      'workflow_invalid',
      `the workflow has ${errors.length === 1 ? 'an error' : `${errors.length} errors`}: ${errors[0]?.message}`,
      { validation: validated.result },
    )
  }
  const content = {
    spec: spec ?? (await compute.writeSpec(organizationId, validated.definition, base)) ?? null,
    definition: validated.definition,
    program: validated.program,
  }
  return { content, warnings: validated.result.warnings, references: validated.references }
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
