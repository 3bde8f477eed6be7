import type { Ending, RunError, RunNode } from './run-state.ts'

/**
 * The details of a run in the Temporal UI, as Markdown: its status, a link back to the run, and a table of its nodes.
 * If the table is too long for `limit` (in characters), the nodes that ended first are left out.
 */
export function runDetails({ nodes, total, end, ending, url, version, limit }: RunFigures): string {
  const link = url ? ` [Open the run](${url})` : ''
  if (end) {
    const outcome = `**${end.status}**${end.error ? `: ${end.error.message}` : ''}`
    return withTable(outcome.slice(0, limit - link.length) + link, nodes, limit)
  }
  const migrated = version === null ? '' : `migrated to version ${version}, `
  const reached = nodes.filter(({ role }) => !role).length
  const outcome = ending ? `**ending as ${ending.status}**, ` : '**running**, '
  return withTable(`${outcome}${migrated}${reached} of ${total} nodes reached.${link}`, nodes, limit)
}

const HEADER = '\n\n| node | type | status |\n|---|---|---|\n'

function withTable(line: string, nodes: RunFigures['nodes'], limit: number): string {
  if (nodes.length === 0 || line.length + HEADER.length > limit) return line
  const head = line + HEADER
  const lines = nodes.map(({ title, node_type, status }) => `| ${cell(title)} | ${node_type} | ${status} |\n`)
  let left = limit - head.length
  const shown = new Set<number>()
  // Open nodes first, then the newest.
  const order = [...nodes.keys()].reverse().sort((a, b) => isEnded(nodes[a]!) - isEnded(nodes[b]!))
  for (const index of order) {
    left -= lines[index]!.length
    if (left < 0) break
    shown.add(index)
  }
  return head + lines.filter((_, index) => shown.has(index)).join('')
}

export interface RunFigures {
  /** The nodes that were reached, in order. */
  nodes: (Pick<RunNode, 'title' | 'node_type' | 'settled_segment' | 'role'> & { status: string })[]
  /** The number of nodes of the workflow. */
  total: number
  end: { status: string; error: RunError | null } | undefined
  /** Its outcome, while its cleanup nodes run. */
  ending?: Pick<Ending, 'status'> | undefined
  /** The version of the workflow, if it is not the one that the run was started with. */
  version: number | null
  /** The URL of the run in the API, if its public URL is configured. */
  url: string | undefined
  limit: number
}

const isEnded = ({ settled_segment }: Pick<RunNode, 'settled_segment'>) => Number(settled_segment !== null)

/** The text in one cell of a table: a title may have any character. */
const cell = (text: string) => text.replace(/[\\|*_`[\]<>]/g, '\\$&').replace(/\s+/g, ' ')
