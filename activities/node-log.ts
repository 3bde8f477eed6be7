import { redactText } from '../db/log.ts'
import type { NodeContext, RecordEffects } from '../workflows/nodes/define.ts'
import type { Outcome } from './execute.ts'

/** One line of what a tested node did. `time` is ISO 8601. */
export interface LogLine {
  time: string
  message: string
}

const MAX_LINES = 100
const MAX_LENGTH = 500

/**
 * What a node does, told as it does it: requests, records and events, with how each went and how long it took. Names
 * of headers, fields and parameters are told, their values never: any of them may be a secret.
 */
export class NodeLog {
  readonly lines: LogLine[] = []

  add(message: string): void {
    if (this.lines.length === MAX_LINES) return
    this.lines.push({
      time: new Date().toISOString(),
      message: redactText(message).slice(0, MAX_LENGTH),
    })
  }

  /** How the node ended. */
  ended(outcome: Outcome): void {
    if (outcome.status === 'failed') this.add(`failed: ${outcome.error.code}: ${outcome.error.message}`)
    else if (outcome.status === 'ended') this.add(`would end the run as ${outcome.end.status}`)
    else if (outcome.status === 'waiting')
      this.add(`would wait until ${outcome.wait_until.toISOString()}, and leave by ${outcome.handle}`)
    else this.add(`left by ${outcome.handle}`)
  }

  http(call: NodeContext['http']): NodeContext['http'] {
    return (request) => {
      const { method, url, headers = {}, query = {}, body } = request
      this.add(
        [
          `${method} ${withoutQuery(url)}`,
          ...listed('query', [...namesInQuery(url), ...Object.keys(query)]),
          ...listed('headers', Object.keys(headers)),
          ...(body === undefined ? [] : [`a body of ${sizeOf(body)} bytes`]),
        ].join(', '),
      )
      return this.timed(call(request), (response) => {
        const type = response.headers['content-type'] ?? 'no content type'
        return `answered ${response.status}, ${type}, ${sizeOf(response.body)} bytes`
      })
    }
  }

  emit(raise: NodeContext['emit']): NodeContext['emit'] {
    return (name, data) => this.timed(raise(name, data), (id) => `raised the event ${name}, ${id}`)
  }

  records(effects: RecordEffects): RecordEffects {
    const one = (record: Record<string, unknown>) => `${record.object} ${record.id}`
    const found = ({ data, has_more }: { data: unknown[]; has_more: boolean }) =>
      `found ${data.length}${has_more ? ', and there are more' : ''}`
    return {
      create: (entity, fields) => {
        this.add([`creating one of ${entity}`, ...listed('fields', Object.keys(fields))].join(', '))
        return this.timed(effects.create(entity, fields), (record) => `created ${one(record)}`)
      },
      get: (entity, id) => {
        this.add(`reading ${id} of ${entity}`)
        return this.timed(effects.get(entity, id), (record) => `read ${one(record)}`)
      },
      search: (entity, query) => {
        const parts = Object.keys(query).filter((name) => name !== 'filters')
        const filters = listed('filters', Object.keys(query.filters ?? {}))
        this.add([`searching ${entity}`, ...listed('by', parts), ...filters].join(', '))
        return this.timed(effects.search(entity, query), found)
      },
      update: (entity, id, fields) => {
        this.add([`changing ${id} of ${entity}`, ...listed('fields', Object.keys(fields))].join(', '))
        return this.timed(effects.update(entity, id, fields), (record) => {
          return `${one(record)} is at version ${record.version}`
        })
      },
      upsert: (entity, by, fields) => {
        this.add([`upserting one of ${entity} by ${by}`, ...listed('fields', Object.keys(fields))].join(', '))
        return this.timed(effects.upsert(entity, by, fields), ({ record, created }) => {
          return `${created ? 'created' : 'changed'} ${one(record)}`
        })
      },
      delete: (entity, id) => this.timed(effects.delete(entity, id), () => `deleted ${id} of ${entity}`),
      link: (entity, id, target, targetId, properties) =>
        this.timed(
          effects.link(entity, id, target, targetId, properties),
          () => `linked ${id} of ${entity} to ${targetId} of ${target}`,
        ),
      unlink: (entity, id, target, targetId) =>
        this.timed(
          effects.unlink(entity, id, target, targetId),
          () => `unlinked ${id} of ${entity} from ${targetId} of ${target}`,
        ),
      listRelated: (entity, id, target, limit) => {
        this.add(`listing the ${target} of ${id} of ${entity}`)
        return this.timed(effects.listRelated(entity, id, target, limit), found)
      },
    }
  }

  /** Tells how it went; an error's own words come with the end. */
  private async timed<T>(work: Promise<T>, told: (value: T) => string): Promise<T> {
    const started = performance.now()
    const elapsed = () => `${Math.round(performance.now() - started)} ms`
    try {
      const value = await work
      this.add(`${told(value)} (${elapsed()})`)
      return value
    } catch (error) {
      this.add(`gave up after ${elapsed()}`)
      throw error
    }
  }
}

const listed = (what: string, names: string[]) => (names.length > 0 ? [`${what} ${names.join(' ')}`] : [])

const withoutQuery = (url: string) => url.split(/[?#]/)[0]!

const namesInQuery = (url: string) =>
  URL.canParse(url) ? [...new Set(new URL(url).searchParams.keys())] : []

const sizeOf = (value: unknown) =>
  Buffer.byteLength(typeof value === 'string' ? value : JSON.stringify(value ?? ''))
