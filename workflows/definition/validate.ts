import type { z } from 'zod'
import type { Catalogue } from '../nodes/catalogue.ts'
import { findNodeType } from '../nodes/index.ts'
import { checkGraph, checkLikelyMistakes, checkNodes, checkTrigger } from './check-nodes.ts'
import { checkReferences } from './check-references.ts'
import { checkTypes } from './check-types.ts'
import { isWarning, type Problem, pointer } from './errors.ts'
import { graphOf } from './graph.ts'
import { common, defaultHandle, type Lowered, lowerSpec, nodeSpec } from './lower.ts'
import { parseYaml } from './parse.ts'
import { salvage, schemaProblems } from './salvage.ts'
import { definitionSchema, specSchema } from './schema.ts'
import type { Definition, Edge, Finding, ValidationResult } from './types.ts'

export interface Validated {
  result: ValidationResult
  /** Present if the result is valid. */
  definition?: Definition
}

/** Of errors, and of warnings. */
const MAX_FINDINGS = 200

/** Checks a YAML authoring spec; every finding has its position in the text. Never throws. */
export function validateSpec(yamlText: string, catalogue: Catalogue): Validated {
  const { value, problems, locate } = parseYaml(yamlText)
  const place = ({ line, column, ...problem }: Problem & { line?: number; column?: number }) =>
    finding(problem, line && column ? { line, column } : locate(problem.path, problem.atKey))
  if (problems.some(({ code }) => code === 'yaml_syntax' || code === 'yaml_limit'))
    return conclude(problems.map(place))

  const shape = schemaProblems(specSchema, value)
  const spec = salvage(specSchema, value)
  const lowered = spec && lowerSpec(spec)
  const found = [...problems, ...shape, ...(lowered ? check(lowered, catalogue) : [])]
  return conclude(found.map(place), lowered?.definition)
}

/** Checks a raw definition, `{nodes, edges, trigger, inputs, outputs}`. Never throws. */
export function validateDefinition(raw: unknown, catalogue: Catalogue): Validated {
  const shape = schemaProblems(definitionSchema, raw)
  const parsed = salvage(definitionSchema, raw)
  const lowered = parsed && lowerRaw(parsed)
  const found = [...shape, ...(lowered ? [...duplicates(lowered), ...check(lowered, catalogue)] : [])]
  return conclude(
    found.map((problem) => finding(problem)),
    lowered?.definition,
  )
}

function check(lowered: Lowered, catalogue: Catalogue): Problem[] {
  const graph = graphOf(lowered.definition, ({ type }) => findNodeType(type))
  const { problems, read } = checkReferences(lowered, graph, catalogue)
  return [
    ...checkTrigger(lowered.definition),
    ...checkNodes(lowered, catalogue),
    ...checkGraph(lowered, graph),
    ...problems,
    ...checkTypes(lowered),
    ...checkLikelyMistakes(lowered, read),
  ]
}

function lowerRaw(raw: z.output<typeof definitionSchema>): Lowered {
  const nodes = raw.nodes.map(({ id, ...node }) => nodeSpec(id, node))
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const edges = raw.edges.map(({ from, handle, to }): Edge => {
    const node = byId.get(from)
    return { from, handle: handle || (node ? defaultHandle(node.type, node.config) : ''), to }
  })
  const index = new Map(nodes.map((node, at) => [node.id, at]))
  return {
    definition: { ...common(raw), nodes, edges },
    ends: [],
    nodePath: (id) => pointer('nodes', index.get(id) ?? ''),
    edgePath: (edge) => pointer('edges', edges.indexOf(edge)),
  }
}

function duplicates({ definition }: Lowered): Problem[] {
  const seen = new Set<string>()
  return definition.nodes.flatMap(({ id }, index): Problem[] => {
    if (!seen.has(id)) {
      seen.add(id)
      return []
    }
    return [
      {
        code: 'duplicate_node',
        message: `duplicate node id ${id}`,
        path: pointer('nodes', index, 'id'),
        node_id: id,
      },
    ]
  })
}

function finding(
  { atKey: _, ...problem }: Problem,
  position: { line?: number; column?: number } = {},
): Finding & Problem {
  return { ...problem, ...position }
}

function conclude(found: (Finding & Problem)[], definition?: Definition): Validated {
  const errors = found.filter(({ code }) => !isWarning(code)).slice(0, MAX_FINDINGS)
  const warnings = found.filter(({ code }) => isWarning(code)).slice(0, MAX_FINDINGS)
  const valid = errors.length === 0
  const result = { valid, errors, warnings }
  return valid && definition ? { result, definition } : { result }
}
