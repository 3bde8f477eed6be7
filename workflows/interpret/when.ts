import { type RenderLimits, render, type Scope } from '../language/expressions/liquid.ts'
import { holds } from '../language/expressions/truth.ts'
import { NodeError } from '../language/node-error.ts'

/**
 * Whether the `when` of a node, a trigger, a wait or an endpoint holds; blanks around its placeholder do not count.
 * Returns NodeError `placeholder_error` if it cannot be rendered, so that callers can continue with others.
 */
export function evaluateWhen(
  when: string,
  scope: Scope,
  limits: Partial<RenderLimits> = {},
): boolean | NodeError {
  try {
    return holds(render(when.trim(), scope, limits))
  } catch (error) {
    if (error instanceof NodeError) return error
    throw error
  }
}
