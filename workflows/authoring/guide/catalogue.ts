import { flowText } from '../../language/repair.ts'
import { shapeOf } from '../../language/shapes.ts'
import type { Catalogue } from '../../nodes/catalogue.ts'
import type { NodeType } from '../../nodes/define.ts'
import { nodeTypes } from '../../nodes/index.ts'
import { briefKeys, firstSentence, keyLines, outputText, typeText } from './schemas.ts'

/** The catalogue of node types, and the kinds of records, as Markdown. */

/**
 * `brief`: the keys of the config of each node type by name only, and metrics without dimensions, if the guide would
 * be too long.
 */
export type Level = 'brief' | 'standard' | 'full'

export const allNodes = (level: Level): string =>
  Object.values(nodeTypes)
    .map((type) => nodeText(type, level))
    .join(level === 'brief' ? '\n' : '\n\n')

export function nodeText(type: NodeType, level: Level): string {
  const fields = fieldsOf(type)
  if (level === 'brief') return briefText(type, fields)
  const full = level === 'full'
  const { example } = type
  const handles = type.handles(example.config)
  const shown = full
    ? handles.map(({ name, description }) => `\`${name}\` (${description})`)
    : handles.map(({ name }) => `\`${name}\``)
  const schemas = full
    ? [
        '',
        'Config schema:',
        fenced('json', JSON.stringify(shapeOf(type.config))),
        'Output schema:',
        fenced('json', JSON.stringify(shapeOf(type.output))),
      ]
    : []
  return [
    `### ${type.type}`,
    `${full || !fields ? type.description : firstSentence(type.description)} Effect: ${type.effectClass(example.config)}.`,
    ...keyLines(shapeOf(type.config), { full }),
    `- handles: ${shown.join(', ') || 'none, it ends the run'}. Output: ${fields ? `{${fields.join(', ')}}` : 'see above'}`,
    '',
    `\`${flowText({ type: type.type, config: example.config })}\``,
    ...schemas,
  ].join('\n')
}

/** A node type in three or four lines; effect and handles only if they differ from pure, and success and error. */
function briefText(type: NodeType, fields: string[] | undefined): string {
  const { description, example } = type
  const effect = type.effectClass(example.config)
  const handles = type.handles(example.config).map(({ name }) => name)
  const shown = handles.join(', ') || 'none'
  const keys = briefKeys(shapeOf(type.config))
  // What has one value for each key is told by its keys.
  const plain = !('operation' in example.config) && !Object.values(example.config).some(isObject)
  return [
    `### ${type.type}`,
    `${fields ? firstSentence(description) : description}${effect === 'pure' ? '' : ` Effect: ${effect}.`}`,
    `${keys}${fields ? ` → ${outputText(shapeOf(type.output), keys)}` : ''}${shown === 'success, error' ? '' : `; handles ${shown}`}`,
    ...(plain ? [] : [`\`${flowText({ type: type.type, config: example.config })}\``]),
  ].join('\n')
}

const isObject = (value: unknown) => typeof value === 'object' && value !== null

/** The fields of the output, if they do not depend on the config. */
function fieldsOf({ output }: NodeType): string[] | undefined {
  const names = Object.keys(shapeOf(output).properties ?? {})
  return names.length > 0 ? names : undefined
}

export const allKinds = (catalogue: Catalogue, full: boolean): string =>
  Object.keys(catalogue.entities)
    .map((entity) => kindText(catalogue, entity, full))
    .join('\n')

/** The metrics by table, with the dimensions to group and filter by. */
export function allMetrics({ metrics }: Catalogue, level: Level): string {
  if (level === 'full')
    return metrics
      .map(({ name, unit, description, dimensions }) => {
        const names = dimensions.map((one) =>
          one.values ? `${one.name} (${one.values.join('|')})` : one.name,
        )
        return `- \`${name}\` (${unit}): ${description} By ${names.join(', ')}.`
      })
      .join('\n')
  const tables = new Map<string, { names: string[]; dimensions: string }>()
  for (const { name, dimensions } of metrics) {
    const [table = '', what = ''] = name.split('.')
    const found = tables.get(table) ?? {
      names: [],
      dimensions: dimensions.map(({ name }) => name).join(', '),
    }
    tables.set(table, found)
    found.names.push(what)
  }
  return [...tables]
    .map(([table, { names, dimensions }]) =>
      level === 'brief'
        ? `- **${table}.** ${names.join(', ')}`
        : `- **${table}.** ${names.join(', ')}; by ${dimensions}`,
    )
    .join('\n')
}

export function kindText({ entities }: Catalogue, entity: string, full: boolean): string {
  const kind = entities[entity]!
  const { properties = {}, required = [] } = shapeOf(kind.schemas.create)
  // Times of the past are for migrations: only the topic of the kind has them.
  const left = [...commonFields(entities), ...kind.backdated]
  const shown = Object.entries(properties).filter(([name]) => full || !left.includes(name))
  const fields = shown.map(([name, one]) => {
    const values = kind.values[name] ?? (one.anyOf ?? [one]).flatMap((option) => option.enum ?? [])
    const mark = required.includes(name) ? '*' : ''
    if (full) return `- \`${name}${mark}\` (${typeText(one)})`
    return values.length > 1 ? `${name}${mark} (${values.join('|')})` : `${name}${mark}`
  })
  if (full) {
    const keys = [...kind.upsertKeys, ANY_CUSTOM_FIELD].join(', ')
    return [`### ${entity}`, `One is a ${kind.object}; upsert by ${keys}. * is required.`, ...fields].join(
      '\n',
    )
  }
  const common = commonUpsertKeys(entities)
  const own = kind.upsertKeys.filter((key) => !common.includes(key))
  return `- **${entity}**${own.length > 0 ? ` (upsert also by ${own.join(', ')})` : ''}: ${fields.join(', ')}`
}

const ANY_CUSTOM_FIELD = 'custom_fields.<name>'

/** The keys by which an upsert finds records of every kind. */
export function commonUpsertKeys(entities: Catalogue['entities']): string[] {
  const [first = [], ...others] = Object.values(entities).map(({ upsertKeys }) => [
    ...upsertKeys,
    ANY_CUSTOM_FIELD,
  ])
  return first.filter((key) => others.every((keys) => keys.includes(key)))
}

/** The fields that every kind has; the guide names them once. */
export function commonFields(entities: Catalogue['entities']): string[] {
  const [first = [], ...others] = Object.values(entities).map(({ writable, backdated }) =>
    writable.filter((name) => !backdated.includes(name)),
  )
  return first.filter((name) => others.every((names) => names.includes(name)))
}

export const fenced = (language: string, text: string) => `\`\`\`${language}\n${text.trimEnd()}\n\`\`\``
