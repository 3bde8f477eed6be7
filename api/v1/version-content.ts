import { AppError } from '../../db/errors.ts'
import type { VersionContent } from '../../db/workflows.ts'
import { compile } from '../../workflows/definition/compile.ts'
import { MAX_SPEC_BYTES } from '../../workflows/definition/parse.ts'
import type { Finding } from '../../workflows/definition/types.ts'
import { validateDefinition, validateSpec } from '../../workflows/definition/validate.ts'
import { validationContext } from './validation-context.ts'

/** What a version is saved from: one of the two. */
export interface Source {
  spec?: string | undefined
  definition?: Record<string, unknown> | undefined
}

/** What will be stored. Throws `payload_too_large`, or `workflow_invalid` with the whole result. */
export function checked({ spec, definition }: Source): { content: VersionContent; warnings: Finding[] } {
  if (spec !== undefined && Buffer.byteLength(spec) > MAX_SPEC_BYTES)
    throw new AppError('payload_too_large', `a spec may have ${MAX_SPEC_BYTES / 1024} KiB at most`)
  const context = validationContext()
  const validated = spec === undefined ? validateDefinition(definition, context) : validateSpec(spec, context)
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

/** A raw definition need not say a name; then it does not rename. */
export const namedBy = ({ definition }: Source, content: VersionContent) =>
  definition && definition.name === undefined ? undefined : content.definition.name

export const keepName = (content: VersionContent, name: string): VersionContent => ({
  ...content,
  definition: { ...content.definition, name },
})
