import { isObject } from '../shared/is-object.ts'
import type { CaseResult, Expectation, Mismatch, PlannedEffect } from './test-case.ts'

/** Mismatches of one case that are reported. */
const MOST = 50

type Happened = Pick<CaseResult, 'status' | 'outputs' | 'error' | 'nodes' | 'effects'>

/** How a run differs from what is expected of it. */
export function mismatchesOf(expect: Expectation, run: Happened): Mismatch[] {
  const found: Mismatch[] = []
  const compare = (name: 'status' | 'outputs' | 'error') => {
    if (expect[name] !== undefined) differ(expect[name], run[name], name, found)
  }
  compare('status')
  compare('outputs')
  compare('error')
  const nodes = new Map(run.nodes.map((node) => [keyOf(node), node]))
  for (const [key, wanted] of Object.entries(expect.nodes ?? {})) {
    const node = nodes.get(key)
    if (node) differ(wanted, node, `nodes.${key}`, found)
    else found.push({ path: `nodes.${key}`, message: 'the run did not reach it', expected: wanted })
  }
  if (expect.effects) compareEffects(expect.effects, run.effects, found)
  return found.slice(0, MOST)
}

const keyOf = ({ path, node_id }: { path: string; node_id: string }) =>
  path === '' ? node_id : `${path}/${node_id}`

/**
 * Each expected effect takes the first one that it matches, else one of its node, from which it differs. What is left
 * over must be reads.
 */
function compareEffects(
  wanted: Record<string, unknown>[],
  effects: PlannedEffect[],
  found: Mismatch[],
): void {
  const left = [...effects]
  for (const [index, { node, ...rest }] of wanted.entries()) {
    const one = { ...rest, ...(node === undefined ? {} : { node_id: node }) }
    const at = left.findIndex((effect) => holds(one, effect))
    if (at >= 0) {
      left.splice(at, 1)
      continue
    }
    const near = left.findIndex(({ node_id }) => node === undefined || node_id === node)
    if (near >= 0) differ(one, left.splice(near, 1)[0], `effects.${index}`, found)
    else
      found.push({
        path: `effects.${index}`,
        message: 'no effect of the run is left for it',
        expected: wanted[index],
      })
  }
  for (const effect of left)
    if (effect.effect !== 'read')
      found.push({
        path: 'effects',
        message: `${keyOf(effect)} has an effect that is not expected`,
        actual: effect,
      })
}

const holds = (expected: unknown, actual: unknown): boolean => {
  const found: Mismatch[] = []
  differ(expected, actual, '', found)
  return found.length === 0
}

function differ(expected: unknown, actual: unknown, path: string, found: Mismatch[]): void {
  if (found.length >= MOST) return
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual)) found.push(other(path, expected, actual))
    else if (expected.length !== actual.length)
      found.push({
        path,
        message: `has ${actual.length} items instead of ${expected.length}`,
        expected,
        actual,
      })
    else
      for (const [index, item] of expected.entries()) differ(item, actual[index], `${path}.${index}`, found)
    return
  }
  if (isObject(expected)) {
    if (!isObject(actual)) found.push(other(path, expected, actual))
    else
      for (const [name, value] of Object.entries(expected)) {
        const at = path === '' ? name : `${path}.${name}`
        if (Object.hasOwn(actual, name)) differ(value, actual[name], at, found)
        else found.push({ path: at, message: 'is missing', expected: value })
      }
    return
  }
  if (!Object.is(expected, actual)) found.push(other(path, expected, actual))
}

const other = (path: string, expected: unknown, actual: unknown): Mismatch => ({
  path,
  message: 'is another value',
  expected,
  actual,
})
