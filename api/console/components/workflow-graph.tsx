import type { Definition } from '../../../workflows/language/definition.ts'
import { BOX, type Layout, layoutOf } from '../workflows/graph-layout.ts'
import { Scrollable } from './scrollable.tsx'

/** More would make the page slow to read, and its drawing larger than anybody looks at. */
const MOST_NODES = 100

/** A wider drawing is scrolled: its texts would be too small. */
const MOST_SHRUNK = 480

/** Room for arrows and outlines. */
const MARGIN = 8

/** The nodes of a workflow from top to bottom, with the edges between them. A click goes to the node's lines. */
export function WorkflowGraph({ definition }: { definition: Pick<Definition, 'nodes' | 'edges'> }) {
  const { nodes, edges } = definition
  if (nodes.length > MOST_NODES)
    return (
      <p class="muted">
        It has {nodes.length} nodes: more than {MOST_NODES} are not drawn.
      </p>
    )
  const layout = layoutOf({ nodes: nodes.map(({ id }) => id), edges: labelled(edges) })
  const { width, height } = layout
  const box = [-MARGIN, -MARGIN, width + 2 * MARGIN, height + 2 * MARGIN]
  return (
    <Scrollable class="graph" label="The graph">
      <svg
        viewBox={box.join(' ')}
        width={box[2]}
        height={box[3]}
        class={width > MOST_SHRUNK ? undefined : 'fits'}
        role="img"
        aria-label={`A graph of ${nodes.length} nodes`}
      >
        <defs>
          <marker
            id="arrow"
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="7"
            markerHeight="7"
            orient="auto"
          >
            <path d="M0 0 8 4 0 8z" />
          </marker>
        </defs>
        {layout.lines.map((line) => (
          <Line line={line} key={`${line.from} ${line.label} ${line.to}`} />
        ))}
        {nodes.map(({ id, type, title }) => {
          const { x, y } = layout.boxes.get(id)!
          return (
            <g class="node" transform={`translate(${x} ${y})`} data-node={id} key={id}>
              <title>{`${title ?? id} (${type})`}</title>
              <rect width={BOX.width} height={BOX.height} rx="6" />
              <text x="12" y="18">
                {clipped(title ?? id)}
              </text>
              <text x="12" y="34" class="type">
                {clipped(type)}
              </text>
            </g>
          )
        })}
      </svg>
    </Scrollable>
  )
}

/** A handle is worth a word where a node has several. */
function labelled(edges: Definition['edges']) {
  const handles = new Map<string, Set<string>>()
  for (const { from, handle } of edges) handles.set(from, (handles.get(from) ?? new Set()).add(handle))
  return edges.map(({ from, handle, to }) => ({
    from,
    to,
    label: handles.get(from)!.size > 1 || handle === 'error' ? handle : undefined,
  }))
}

function Line({ line: { points, label, isBack } }: { line: Layout['lines'][number] }) {
  const [first, ...rest] = points as [[number, number], ...[number, number][]]
  let [x, y] = first
  const curves = rest.map(([toX, toY]) => {
    const bend = isBack
      ? `C${x + 40} ${y} ${toX + 40} ${toY}`
      : `C${x} ${(y + toY) / 2} ${toX} ${(y + toY) / 2}`
    ;[x, y] = [toX, toY]
    return `${bend} ${toX} ${toY}`
  })
  const [nextX, nextY] = rest[0]!
  return (
    <g class={isBack ? 'line back' : 'line'}>
      <path d={`M${first.join(' ')}${curves.join('')}`} marker-end="url(#arrow)" />
      {label && (
        <text x={(first[0] + nextX) / 2} y={(first[1] + nextY) / 2 + 4} text-anchor="middle">
          {clipped(label)}
        </text>
      )}
    </g>
  )
}

/** Characters that fit into a box; the title has all. */
const FITS = 22

const clipped = (text: string) =>
  [...text].length > FITS ? `${[...text].slice(0, FITS - 1).join('')}…` : text
