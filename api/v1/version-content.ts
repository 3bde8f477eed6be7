import { AppError } from '../../db/errors.ts'
import type { VersionContent } from '../../db/workflows/workflows.ts'
import { compile } from '../../workflows/definition/compile.ts'
import { MAX_SPEC_BYTES } from '../../workflows/definition/parse.ts'
import type { Finding } from '../../workflows/definition/types.ts'
import { validateDefinition, validateSpec } from '../../workflows/definition/validate.ts'
import { catalogue } from './catalogue.ts'

/** The source of a version: a spec or a raw definition. */
export interface Source {
  spec?: string | undefined
  definition?: Record<string, unknown> | undefined
}

/** Validates and compiles a source. Throws `payload_too_large`, or `workflow_invalid` with the validation result. */
export function compiled({ spec, definition }: Source): { content: VersionContent; warnings: Finding[] } {
  if (spec !== undefined && Buffer.byteLength(spec) > MAX_SPEC_BYTES)
    throw new AppError('payload_too_large', `a spec may have at most ${MAX_SPEC_BYTES / 1024} KiB`)
  const validated =
    spec === undefined ? validateDefinition(definition, catalogue) : validateSpec(spec, catalogue)
  if (!validated.definition) {
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
    plan: compile(validated.definition),
  }
  return { content, warnings: validated.result.warnings }
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
 * The parts of a title that differ from the previous version. So a spec that the client read before a rename does not
 * undo the rename when it is saved.
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
