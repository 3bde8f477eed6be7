import { findNodeType } from '../nodes/index.ts'
import type { RunIteration, RunLoop, RunNode, RunState } from './run-state.ts'

/**
 * A set of nodes that run together: those outside of any loop, or those of one iteration of a loop. Only the open
 * iterations of a run are loaded.
 */
export interface Frame {
  /** '' outside of any loop; `each:3` in the fourth iteration of `each`, `each:3/inner:0` in a loop within it. */
  path: string
  /** By node id. */
  rows: Map<string, RunNode>
  /** The iteration; absent outside of any loop. */
  iteration?: RunIteration
  loop?: OpenLoop
}

/** A loop whose items are not all done. */
export interface OpenLoop {
  state: RunLoop
  /** The id of its node. */
  id: string
  /** The frame that its node is in. */
  within: Frame
  /** Its open iterations, by path. */
  open: Map<string, Frame>
}

/** The type of the node of a loop. */
export const typeOfLoop = ({ id, within }: OpenLoop) => findNodeType(within.rows.get(id)?.node_type ?? '')

/** Whether the body of a loop runs until a condition holds, instead of for each item. */
export const isRepeat = (loop: OpenLoop): boolean => typeOfLoop(loop)?.repeats === true

/** The key of a loop in a run, from the path of its frame and its id. */
export const loopKey = (path: string, id: string) => (path === '' ? id : `${path}/${id}`)

/** The key of a node in a run. */
export const nodeKey = loopKey

export const iterationPath = ({ loop, index }: Pick<RunIteration, 'loop' | 'index'>) => `${loop}:${index}`

/** The path of the frame and the id of a node, from its key. */
export function splitKey(loop: string): { path: string; id: string } {
  const slash = loop.lastIndexOf('/')
  return { path: loop.slice(0, Math.max(0, slash)), id: loop.slice(slash + 1) }
}

/** The frames of a run by path, outer ones first, and its open loops by key. The rows are copies. */
export function framesOf(state: Pick<RunState, 'nodes'> & Partial<Pick<RunState, 'loops' | 'iterations'>>) {
  const frames = new Map<string, Frame>([['', { path: '', rows: new Map() }]])
  const loops = new Map<string, OpenLoop>()
  const states = new Map((state.loops ?? []).map((loop) => [loop.loop, loop]))
  const openLoop = (key: string) => {
    const { path, id } = splitKey(key)
    const [loop, within] = [states.get(key), frames.get(path)]
    if (loop && within && !loops.has(key)) loops.set(key, { state: { ...loop }, id, within, open: new Map() })
    return loops.get(key)
  }
  const depth = ({ loop }: RunIteration) => loop.split('/').length
  const iterations = [...(state.iterations ?? [])].sort((a, b) => depth(a) - depth(b) || a.index - b.index)
  for (const iteration of iterations) {
    const loop = openLoop(iteration.loop)
    if (loop) openFrame(frames, loop, { ...iteration })
  }
  // Loops without an open iteration.
  for (const key of states.keys()) openLoop(key)
  for (const row of state.nodes) frames.get(row.path)?.rows.set(row.node_id, { ...row })
  return { frames, loops }
}

/** Adds the frame of an iteration. */
export function openFrame(frames: Map<string, Frame>, loop: OpenLoop, iteration: RunIteration): Frame {
  const frame: Frame = { path: iterationPath(iteration), rows: new Map(), iteration, loop }
  frames.set(frame.path, frame)
  loop.open.set(frame.path, frame)
  return frame
}

/** The frame and those around it, the innermost first. */
export function chainOf(frame: Frame): Frame[] {
  const chain = [frame]
  for (let at = frame.loop?.within; at; at = at.loop?.within) chain.push(at)
  return chain
}
