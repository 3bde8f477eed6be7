import { jsonProblem, withExactNumbers } from '../shared/json-texts.ts'

/**
 * The pure functions of texts that nodes call through their context, because they may take more than some 20 ms: the
 * worker has large ones computed in a thread.
 */
export const computations = { jsonProblem, withExactNumbers }

export type Computations = typeof computations

/** Throws what the worker needs to make the computation first, so a node calls it before its effects. */
export type Compute = <Name extends keyof Computations>(
  name: Name,
  ...values: Parameters<Computations[Name]>
) => ReturnType<Computations[Name]>

/** Computes at once. */
export const computeHere = ((name: keyof Computations, text: string) => computations[name](text)) as Compute
