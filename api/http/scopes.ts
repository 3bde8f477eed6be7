import type { Scope } from '../../db/scopes.ts'

export { allows, SCOPES, type Scope } from '../../db/scopes.ts'

/** Who is calling: a key (on /v1) or a session (on /app). */
export interface Caller {
  type: 'key' | 'user'
  id: string
  name: string
  organization: {
    id: string
    name: string
    plan: 'free' | 'professional' | 'enterprise'
    currency: string
    timezone: string
  }
  scopes: ReadonlySet<Scope>
}
