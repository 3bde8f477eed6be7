import type { z } from 'zod'
import { checkConfig } from '../language/config.ts'
import type { NodeSpec } from '../language/definition.ts'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { filteredBy } from '../language/expressions/translate.ts'
import { countValues } from '../language/measure.ts'
import { meantBy, type Problem, pointer, write } from '../language/problems.ts'
import { flowText, replaced } from '../language/repair.ts'
import { originOf } from '../language/sample-types.ts'
import { shapeOf, shapesAt } from '../language/shapes.ts'
import type { PlacedText } from '../language/texts.ts'
import {
  allowedValues,
  isUnknown,
  kindsOf,
  maskOf,
  memberType,
  optionsOf,
  unionOf,
  type ValueType,
} from '../language/value-types.ts'
import type { Catalogue } from '../nodes/catalogue.ts'
import type { NodeType } from '../nodes/define.ts'
import { findNodeType } from '../nodes/index.ts'
import { addressHint } from '../nodes/people.ts'
import { SPEC } from '../shared/limits.ts'
import { comparisonProblems } from './check-comparisons.ts'
import type { Lowered } from './lower.ts'
import { listed, oneOfThese, readsMask, unknownCustomField } from './mistakes.ts'
import { pathWithin } from './path-hints.ts'
import type { Site, Types } from './types.ts'

/** One sample of each type: a key of a config that accepts the sample accepts the type. */
const SAMPLES: Record<string, unknown> = {
  string: 'x',
  number: 1,
  boolean: true,
  object: {},
  array: [],
}

/** Types that a filter can convert to text. */
const TEXTUAL = ['number', 'boolean']

/**
 * Checks what the types of placeholders tell about a config: each key must accept what it gets, the items must have
 * the fields that its keys name, and a value must be comparable with the values beside it.
 */
export function checkTypes(
  { definition, texts, nodePath }: Lowered,
  types: Types,
  catalogue: Catalogue,
): Problem[] {
  return definition.nodes.flatMap((node): Problem[] => {
    const type = findNodeType(node.type)
    if (!type) return []
    const perItem = type.perItem(node.config)
    const site = (path: readonly PropertyKey[]): Site => ({
      reader: node,
      perItem: perItem.includes(String(path[0])),
    })
    const placed = (problem: Omit<Problem, 'path'> & { path: readonly PropertyKey[] }): Problem => ({
      ...problem,
      path: `${nodePath(node.id)}/config${pointer(...problem.path)}`,
      node_id: node.id,
    })
    const check = new ConfigCheck(node, type, catalogue)
    const whole = texts
      .of(node.config)
      .filter(({ text, path }) => hasPlaceholder(text) && !Object.hasOwn(type.late, String(path[0])))
    return [
      ...whole
        .flatMap((one) => {
          const given = types.ofText(one.text, site(one.path))
          return isUnknown(given) || kindsOf(given)?.length === 0 ? [] : [{ ...one, given }]
        })
        .slice(0, Math.max(1, SPEC.typeChecks / countValues(node.config)))
        .flatMap((one) => check.problems(one)),
      ...fieldProblems(node, type, types),
      ...type
        .comparisons(node.config)
        .flatMap((comparison) => comparisonProblems(comparison, types.ofCompared(comparison, node))),
    ].map(placed)
  })
}

type Found = Omit<Problem, 'path'> & { path: readonly PropertyKey[] }

/** Checks the values in the config of one node. */
class ConfigCheck {
  private readonly node: NodeSpec
  private readonly type: NodeType
  private readonly schemas: { path: PropertyKey[]; schema: z.ZodType; value: unknown }[]

  constructor(node: NodeSpec, type: NodeType, catalogue: Catalogue) {
    this.node = node
    this.type = type
    this.schemas = [
      ...type
        .keySchemas(node.config, catalogue)
        .map((one) => ({ ...one, value: one.path.reduce<unknown>(memberAt, node.config) })),
      { path: [], schema: type.config, value: node.config },
    ]
  }

  problems({ text, path, given }: PlacedText & { given: ValueType }): Found[] {
    const {
      schema,
      value,
      path: at,
    } = this.schemas.find((one) => one.path.every((key, index) => key === path[index]))!
    const inner = path.slice(at.length)
    if (inner.length === 0) return []
    const name = path.join('.')
    const kinds = kindsOf(given) ?? []
    const wanted = unionOf(shapesAt(shapeOf(schema), value, inner))
    const accepted = kindsOf(wanted)
    // For most keys the shape tells which types they accept. Checking a whole config takes a hundred times longer.
    const refuses = (kind: string) =>
      !accepted?.includes(kind) &&
      checkConfig(schema, replaced(value, inner, SAMPLES[kind])).some(
        (issue) => issue.code === 'invalid_type' && pointer(...issue.path) === pointer(...inner),
      )
    if (kinds.length > 0 && kinds.every((kind) => Object.hasOwn(SAMPLES, kind) && refuses(kind)))
      return [
        {
          code: originOf(given)?.code ?? 'type_mismatch',
          message: `${text} is of type ${kinds.join(' or ')}, which ${name} of a ${this.node.type} does not accept`,
          path,
          hint() {
            if (kinds.every((kind) => TEXTUAL.includes(kind)) && !refuses('string'))
              return write(flowText(filteredBy(text, 'append: ""')))
            // A list in a text would be JSON.
            if (kinds.every((kind) => kind === 'array') && !refuses('string'))
              return write(flowText(filteredBy(text, 'join: ", "')))
            if (kinds.every((kind) => TEXTUAL.includes(kind) || kind === 'string') && !refuses('boolean'))
              return `compare it: \`${text.replace(/\s*\}\}$/, ' == … }}')}\``
            if (isPlainText(given) && !refuses('number'))
              return write(flowText(text.replace(/\s*\}\}$/, ' | plus: 0 }}')))
            const isOne = kinds.every((kind) => kind === 'object')
            if (!isOne || refuses('array')) return undefined
            // The next one may be a list.
            if (originOf(given)) return write(flowText(text.replace(/\s*\}\}$/, ' | compact }}')))
            return write(flowText([text]))
          },
        },
      ]
    if (this.type.addresses.includes(String(path[0])) && isId(given))
      return [
        {
          code: 'type_mismatch',
          message: `${text} is an id, and ${name} of a ${this.node.type} takes email addresses`,
          path,
          hint: addressHint(text),
        },
      ]
    return valueProblems(text, path, given, wanted)
  }
}

/** Whether a value is a text that may have a number: no time, id, or one of a set. */
const isPlainText = (type: ValueType) =>
  optionsOf(type).every((one) => one.type === 'string' && one.format === undefined && one.enum === undefined)

const isId = (type: ValueType) =>
  optionsOf(type).length > 0 && optionsOf(type).every(({ format }) => format === 'uuid')

const memberAt = (value: unknown, key: PropertyKey): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined

/** Checks a value of a list against the values that a key accepts. */
function valueProblems(text: string, path: PropertyKey[], given: ValueType, wanted: ValueType): Found[] {
  const [values, accepted] = [allowedValues(given), allowedValues(wanted)]
  if (!values || !accepted) return []
  const refused = values.filter((value) => !accepted.includes(value))
  if (refused.length === 0) return []
  const name = path.join('.')
  if (refused.length === values.length)
    return [
      {
        code: originOf(given)?.code ?? 'type_mismatch',
        message: `${text} is one of ${listed(values)}, and ${name} accepts none of them`,
        path,
        hint: () => oneOfThese(accepted),
      },
    ]
  return [
    {
      code: 'value_may_not_fit',
      message: `${text} can be ${listed(refused)}, which ${name} does not accept`,
      path,
      hint: `convert it to one of ${listed(accepted)}, such as by a switch`,
    },
  ]
}

/** Checks the keys that name a field of the items. */
function fieldProblems(node: NodeSpec, type: NodeType, types: Types): Found[] {
  const fields = type.itemFields(node.config).filter(({ field }) => !hasPlaceholder(field))
  if (fields.length === 0) return []
  const items = types.ofItems(node)
  return fields.flatMap(({ field, path }): Found[] => {
    let at = items
    const keys = field.split('.')
    for (const [index, key] of keys.entries()) {
      if (isUnknown(at) || optionsOf(at).length === 0) return []
      const found = memberType(at, key)
      if (!('type' in found)) {
        const meant = pathWithin(at, key) ?? meantBy(key, found.names)
        const better = keys.map((one, place) => (place === index ? meant : one)).join('.')
        return [
          {
            code: originOf(at)?.code ?? 'unknown_field',
            message: `the items have no ${field.slice(0, 100)}${found.names.length > 0 ? `: they have ${listed(found.names)}` : ''}`,
            path,
            hint: () => (meant === undefined ? oneOfThese(found.names) : `did you mean ${better}?`),
          },
        ]
      }
      if (found.customFieldOf !== undefined)
        return [
          {
            ...unknownCustomField(
              key,
              found.customFieldOf,
              found.names ?? [],
              (meant) => `did you mean custom_fields.${meant}?`,
            ),
            path,
          },
        ]
      at = found.type
      const entity = maskOf(at)
      if (entity !== undefined) return [{ ...readsMask(key, entity), path }]
    }
    return []
  })
}
