import type { Tenant } from '../../db/postgres/tenancy.ts'
import { listCustomFields } from '../../db/records/custom-fields/definitions.ts'
import { getWorkflow, lockWorkflow, updateWorkflow, type Workflow } from '../../db/workflows/workflows.ts'
import type { Finding } from '../../workflows/language/definition.ts'
import type { Source } from '../compute/tasks.ts'
import type { Author } from './known-values.ts'
import { unknownNames } from './unknown-names.ts'
import { changedTitle, compiled, titleOf, withName } from './version-content.ts'

export interface Save {
  /** Without a spec and a definition only the name and description change, and no version is made. */
  source: Source
  name?: string | undefined
  description?: string | null | undefined
  /** The versions that If-Match accepts. */
  accepted: readonly number[] | undefined
  /** The version that is restored. */
  restored_from?: number
}

/**
 * Validates what is saved, and makes the next version of a workflow. Throws `not_found`, `version_conflict`,
 * `workflow_invalid`, `payload_too_large`.
 */
export async function saveVersion(
  request: Author,
  workflowId: string,
  save: Save,
): Promise<{ row: Workflow; warnings: Finding[] }> {
  const { definition } = save.source
  if (definition === undefined) return (await savedAfter(request, workflowId, save))!
  for (;;) {
    const current = await request.tenant((tx) => getWorkflow(tx, workflowId))
    const source = { definition: withTitle(definition, current) }
    const saved = await savedAfter(request, workflowId, { ...save, source }, { current, given: save.source })
    if (saved) return saved
  }
}

/** What a raw definition is written over; `given` is the definition as the request has it. */
interface Base {
  current: Workflow
  given: Source
}

/** @returns undefined if the workflow is no longer at the version of `base`: the YAML is then written again. */
async function savedAfter(
  request: Author,
  workflowId: string,
  { source, name, description, accepted, restored_from }: Save,
  base?: Base,
) {
  const { deps, tenant } = request
  const compiledSource =
    source.spec === undefined && source.definition === undefined
      ? undefined
      : await compiled(
          request,
          { ...source, customFields: await tenant(listCustomFields) },
          { base: base?.current.spec, workflowId },
        )
  return tenant(async (tx: Tenant) => {
    const before = await lockWorkflow(tx, workflowId, accepted)
    if (base && base.current.version !== before.version) return undefined
    const title = compiledSource ? titleOf(base?.given ?? source, compiledSource.content) : {}
    const row = await updateWorkflow(tx, before, {
      ...changedTitle(title, before),
      ...(name === undefined ? {} : { name }),
      ...(description === undefined ? {} : { description }),
      ...(compiledSource
        ? { content: withName(compiledSource.content, title.name ?? before.definition.name) }
        : {}),
      ...(restored_from === undefined ? {} : { restored_from }),
    })
    const unknown = compiledSource
      ? await unknownNames(tx, compiledSource.references, { ...deps.config })
      : []
    return { row, warnings: [...(compiledSource?.warnings ?? []), ...unknown] }
  })
}

/** A raw definition can omit its name and description: the version then keeps those of the one before. */
function withTitle(written: Record<string, unknown>, { definition }: Workflow): Record<string, unknown> {
  const { name, description } = definition
  return {
    ...written,
    ...(written.name === undefined ? { name } : {}),
    ...(written.description === undefined && description !== undefined ? { description } : {}),
  }
}
