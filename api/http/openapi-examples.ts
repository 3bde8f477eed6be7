import answers from './openapi-examples.json' with { type: 'json' }
import type { Json } from './openapi-schemas.ts'

/**
 * Example responses: what a running API answered. A test (`examples.test.ts`) calls every operation, compares the
 * answers with `openapi-examples.json`, and writes the file with `RECORD_EXAMPLES=1`.
 */
export class Examples {
  /** Equal answers are one component, named after the first operation that has it. */
  readonly components: Record<string, { value: unknown }> = {}
  private readonly names = new Map<string, string>()

  /** The example of an operation, as a part of its media type. */
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
