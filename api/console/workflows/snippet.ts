import { stringify } from 'yaml'

/** What a snippet is made of: a node type as the API shows it. */
export interface SnippetType {
  node_type: string
  example: { config: Record<string, unknown> }
}

/** The example of a node type as lines of a spec: a node below `nodes:`, with an id that the spec does not have yet. */
export function snippetOf({ node_type, example }: SnippetType, spec = ''): string {
  const taken = new Set([...spec.matchAll(/^ +([\w-]+):/gm)].map(([, name]) => name))
  let id = node_type
  for (let i = 2; taken.has(id); i++) id = `${node_type}_${i}`
  const text = stringify({ [id]: { type: node_type, config: example.config } }, { lineWidth: 0 })
  return text.replace(/^(?=.)/gm, '  ')
}
