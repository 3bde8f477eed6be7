import type { Definition } from '../../workflows/language/definition.ts'

/** A definition with the given nodes; what is not given is empty. */
export type PartialDefinition = Partial<Definition> & Pick<Definition, 'nodes'>

/** Without a name it is "Test". */
export const completeDefinition = (definition: PartialDefinition): Definition => ({
  name: 'Test',
  trigger: { type: 'manual' },
  inputs: {},
  edges: [],
  outputs: {},
  settings: {},
  ...definition,
})
