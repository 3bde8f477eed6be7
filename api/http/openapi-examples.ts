import answers from './openapi-examples.json' with { type: 'json' }
import type { Json } from './openapi-schemas.ts'

/**
 * Example responses, recorded from a running API. A test (`examples.test.ts`) calls every operation and compares the
 * responses with `openapi-examples.json`; with `RECORD_EXAMPLES=1` it writes the file.
 */
export class Examples {
  /** Equal responses share one component, named after the first operation. */
  readonly components: Record<string, { value: unknown }> = {}
  private readonly names = new Map<string, string>()

  /** The example of an operation, as a member of its media type. */
  of(operationId: string): Json {
    const value = (answers as Record<string, unknown>)[operationId]
    if (value === undefined) return {}
    const text = JSON.stringify(value)
    const name = this.names.get(text) ?? operationId
    this.names.set(text, name)
    this.components[name] = { value }
    return { examples: { response: { $ref: `#/components/examples/${name}` } } }
  }
}
