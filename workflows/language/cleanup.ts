import type { CleanupNodes, CleanupRole, Definition, NodeSpec } from './definition.ts'

/** A cleanup node in its place, with the path to it from its node or from the settings. */
export interface PlacedCleanup {
  node: NodeSpec
  /** As keys of the definition: `undo`, or `undo` and the index in its list. */
  path: PropertyKey[]
}

/** The cleanup nodes of a definition in its order, with their default ids. */
export const cleanupOf = ({ nodes, settings }: Pick<Definition, 'nodes' | 'settings'>): PlacedCleanup[] => [
  ...nodes.flatMap(({ id, undo }) => placed(undo, 'undo', `${id}_undo`, id)),
  ...placed(settings.on_cancel, 'on_cancel', 'on_cancel'),
  ...placed(settings.finally, 'finally', 'finally'),
]

function placed(
  given: CleanupNodes | undefined,
  role: CleanupRole,
  name: string,
  undoes?: string,
): PlacedCleanup[] {
  if (given === undefined) return []
  const isList = Array.isArray(given)
  return (isList ? given : [given]).map(({ id, ...node }, index) => ({
    node: {
      id: id ?? (index === 0 ? name : `${name}_${index + 1}`),
      ...node,
      role,
      ...(undoes !== undefined && { undoes }),
    },
    path: isList ? [role, index] : [role],
  }))
}
