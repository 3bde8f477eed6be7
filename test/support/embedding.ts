import { createHash, randomBytes } from 'node:crypto'
import { QueryVectors } from '../../db/knowledge/query-vectors.ts'
import { startHttpServer } from './http-server.ts'

/**
 * A small deterministic embedding, without a model: the hashes of the words, of their parts of four letters, and of the
 * groups of the thesaurus that they are in, are added to a vector. So texts with words of common stems, misspelt words or
 * synonyms are near to each other. The thesaurus stands for what a model knows of the language.
 */
export function embeddingOf(text: string, dimensions = 256): number[] {
  const vector: number[] = Array.from({ length: dimensions }, () => 0)
  const lower = text.toLowerCase()
  const words = lower.match(/[\p{L}\p{N}]+/gu) ?? []
  const add = (feature: string, weight: number) => {
    const hash = hashOf(feature)
    // Two places for each feature, so that features with a common place differ in the other.
    for (const part of [hash & 0xffff, hash >>> 16])
      vector[(part >> 1) % dimensions] = vector[(part >> 1) % dimensions]! + (part & 1 ? weight : -weight)
  }
  for (const word of words) {
    if (COMMON.has(word)) continue
    add(word, 1)
    const padded = ` ${word} `
    for (let i = 0; i + 4 <= padded.length; i++) add(padded.slice(i, i + 4), 0.5)
  }
  for (const [i, group] of THESAURUS.entries()) if (group.test(lower)) add(`group ${i}`, 2)
  return vector.some((value) => value !== 0) ? vector : [1, ...vector.slice(1)]
}

/** Words and phrases of one meaning. */
const THESAURUS = [
  'delet|remov|get rid|erase|gone|recover|restor|undo|bin',
  'chang|modif|edit|correct|adjust',
  'cost|fee|price|expensive|charge|euros|dollars',
  'how long does it take|days|when will|wait',
  'allowed|role|permission|may create|cannot edit|not edit',
  'maximum|limit|quota|how many times|at most',
  'mails?|informed|notif',
  'error|fails?|fix|what now',
  'plan|upgrade|edition|greyed',
  'store|kept|region|spreadsheet|save|european',
  'invoice|bill',
  'refund|money back',
  'subscription|membership',
  'shipment|parcel',
  'warehouse|depot',
  'password|login secret',
  'invitation|invite',
  'administrator|admin',
  'deal|opportunity',
  'forecast|revenue',
  'reminder|to-do',
  'calendar|appointment',
  'recording|conversation',
  'newsletter|mailing',
  'import|upload',
  'export|download',
  'workflow|automation',
  'approval|sign-off',
  'retry|attempt',
  'ticket|help request',
  'maintenance|downtime',
  'discount|voucher',
  'transfer|wire',
  'supplier|vendor',
  'employee|colleague|staff',
  'meeting|conference',
].map((words) => new RegExp(`\\b(${words})`))

const COMMON = new Set(
  'a an and are as at be but by can do does for from has have how i if in is it my not of on or our should that the their there this to was we what when where which who why will with you your'.split(
    ' ',
  ),
)

const known = new Map<string, number>()
function hashOf(text: string): number {
  const before = known.get(text)
  if (before !== undefined) return before
  const hash = createHash('sha1').update(text).digest().readUInt32LE()
  known.set(text, hash)
  return hash
}

/** The next answer of the endpoint, instead of vectors. */
export type Misbehaviour =
  | 'hang'
  | { status: number; body?: unknown; headers?: Record<string, string> }
  | { dimensions: number }

export type EmbeddingEndpoint = Awaited<ReturnType<typeof startEmbeddingEndpoint>>

/** An OpenAI-compatible service that makes such embeddings. */
export async function startEmbeddingEndpoint() {
  const requests: { model: string; input: string[]; authorization: string | undefined }[] = []
  const next: Misbehaviour[] = []
  const server = await startHttpServer((request, response, text) => {
    const { model, input, dimensions } = JSON.parse(text)
    requests.push({ model, input, authorization: request.headers.authorization })
    const behaviour = next.shift()
    if (behaviour === 'hang') return
    if (behaviour && 'status' in behaviour) {
      response.writeHead(behaviour.status, { 'Content-Type': 'application/json', ...behaviour.headers })
      return response.end(JSON.stringify(behaviour.body ?? { error: { message: 'no' } }))
    }
    const length = behaviour?.dimensions ?? dimensions ?? 256
    // A model of another name has other vectors.
    const data = input.map((one: string, index: number) => ({
      index,
      embedding: embeddingOf(model === 'small' ? one : `${model} ${one}`, length),
    }))
    response.writeHead(200, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify({ object: 'list', data: data.reverse() }))
  })
  return { ...server, base_url: `${server.url}/v1`, requests, next }
}

/** For an API whose searches need no vectors. */
export const noVectors = () =>
  new QueryVectors(randomBytes(32), {
    embed: () => Promise.reject(new Error('no vectors are expected')),
    close: async () => {},
  })
