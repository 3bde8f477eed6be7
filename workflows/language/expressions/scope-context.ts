import { Context } from 'liquidjs'
import { isObject } from '../../shared/is-object.ts'

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

/** The time zone of the organization, as the root `org` has it; UTC where a scope has no organization. */
export function timezoneOf(scope: object): string {
  const { org } = scope as { org?: unknown }
  return isObject(org) && typeof org.timezone === 'string' ? org.timezone : 'UTC'
}

/** The same of the context in which a filter or an operator is applied. */
export const timezoneIn = ({ environments }: Context): string => timezoneOf(environments)

/** What LiquidJS calls a filter on. */
export interface Applied {
  context: Context
}
