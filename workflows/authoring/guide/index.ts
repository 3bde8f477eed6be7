import { createHash } from 'node:crypto'
import type { Catalogue } from '../../nodes/catalogue.ts'
import { findNodeType, nodeTypes } from '../../nodes/index.ts'
import { fenced, kindText, type Level, nodeText } from './catalogue.ts'
import { EXAMPLES, FIRST_EXAMPLES, type GuideExample } from './examples.ts'
import { TOPICS } from './topics.ts'

/**
 * The guide for authors of specs, generated from the schemas that validate them. The default form, all topics without
 * full detail, has at most `MAX_BYTES` with its examples.
 */
export interface Guide {
  /** Markdown, without the examples. */
  guide: string
  /** A hash of the guide. */
  version: string
  examples: readonly GuideExample[]
}

export const DETAILS = ['standard', 'full'] as const
export type Detail = (typeof DETAILS)[number]

export const MAX_BYTES = 30 * 1024

/** The topics: chapters, node types and kinds of records. */
export const topicsOf = ({ entities }: Catalogue): string[] => [
  ...new Set([...Object.keys(TOPICS), ...Object.keys(nodeTypes), ...Object.keys(entities)]),
]

export function authoringGuide(
  catalogue: Catalogue,
  { topic, detail }: { topic?: string | undefined; detail?: Detail | undefined } = {},
): Guide {
  const guide = topic === undefined ? inWhole(catalogue, detail) : about(catalogue, topic, detail)
  const version = createHash('sha256').update(whole(catalogue, 'full')).digest('hex').slice(0, 12)
  return { guide, version, examples: examplesOf(topic, detail) }
}

/** The guide with its examples, as one text. */
export const asMarkdown = ({ guide, examples }: Pick<Guide, 'guide' | 'examples'>): string =>
  [guide, ...examples.map(({ title, spec }) => `${title}:\n${fenced('yaml', spec)}\n`)].join('\n')

/** The whole guide has a few examples, its topic all. */
function examplesOf(topic: string | undefined, detail: Detail = 'standard'): readonly GuideExample[] {
  if (topic === 'examples') return EXAMPLES
  if (topic !== undefined) return []
  return detail === 'full' ? EXAMPLES : FIRST_EXAMPLES
}

function inWhole(catalogue: Catalogue, detail: Detail = 'standard'): string {
  const text = whole(catalogue, detail)
  return detail === 'full' || Buffer.byteLength(text) <= MAX_BYTES ? text : whole(catalogue, 'brief')
}

/** The guides of a catalogue by their level. Kept: schemas never change, and a guide takes up to 100 ms to write. */
const known = new WeakMap<Catalogue, Map<Level, string>>()

function whole(catalogue: Catalogue, level: Level): string {
  const guides = known.get(catalogue) ?? new Map<Level, string>()
  known.set(catalogue, guides)
  const text = guides.get(level) ?? written(catalogue, level)
  guides.set(level, text)
  return text
}

function written(catalogue: Catalogue, level: Level): string {
  const chapters = Object.values(TOPICS).map(
    ({ title, text }) => `## ${title}\n${text(catalogue, level).trimEnd()}`,
  )
  const more = `More: \`?topic=\` with ${Object.keys(TOPICS).join(', ')}, a node type or a kind of record; \`?detail=full\` adds the JSON Schemas.`
  return `# How to write a workflow\n${more}\n\n${chapters.join('\n\n')}\n`
}

/** One topic, by default in full detail. */
function about(catalogue: Catalogue, topic: string, detail: Detail = 'full'): string {
  const chapter = Object.hasOwn(TOPICS, topic) ? TOPICS[topic] : undefined
  if (chapter) return `## ${chapter.title}\n${chapter.text(catalogue, detail).trimEnd()}\n`
  const type = findNodeType(topic)
  return `${type ? nodeText(type, detail) : kindText(catalogue, topic, detail === 'full')}\n`
}
