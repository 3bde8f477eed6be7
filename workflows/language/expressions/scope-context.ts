import { Context } from 'liquidjs'

/** The members of a record of which only those with a value are stored: the others are empty, not misspelt. */
const SPARSE = 'custom_fields'

/** The values that placeholders read. A custom field without a value is null, as any other field of a record. */
export class ScopeContext extends Context {
  override *_getFromScope(
    scope: unknown,
    given: string[] | string,
    strictVariables?: boolean,
  ): IterableIterator<unknown> {
    const path = typeof given === 'string' ? given.split('.') : given
    const at = path.indexOf(SPARSE)
    if (at >= 0 && at < path.length - 1) {
      const fields: unknown = yield super._getFromScope(
        scope as object,
        path.slice(0, at + 1),
        strictVariables,
      )
      const name = path[at + 1]!
      if (typeof fields === 'object' && fields !== null && !Object.hasOwn(fields, name)) return null
    }
    return yield super._getFromScope(scope as object, path, strictVariables)
  }
}
