import { type KindName, kindNames } from '../../../workflows/shared/record-kinds.ts'

/** Scopes: `<resource>:<level>`. Default deny; `write`, `author` and `run` each imply `read` on the same resource. */

const ofRecords = kindNames.map((kind) => [kind, ['read', 'write'] as const] as const)

const LEVELS = {
  ...(Object.fromEntries(ofRecords) as Record<KindName, readonly ['read', 'write']>),
  /** `backdate`: gives new records times of the past. `reveal`: shows the values of sensitive custom fields. */
  records: ['backdate', 'reveal'],
  workflows: ['read', 'author', 'run'],
  knowledge: ['read', 'write'],
  /** `write`: saved reports. */
  analytics: ['read', 'write'],
  /** The settings of incoming and outgoing webhooks. */
  webhooks: ['read', 'write'],
} as const

export type Scope = { [R in keyof typeof LEVELS]: `${R}:${(typeof LEVELS)[R][number]}` }[keyof typeof LEVELS]

export const SCOPES = Object.entries(LEVELS).flatMap(([resource, levels]) =>
  levels.map((level) => `${resource}:${level}`),
) as Scope[]

/** Whether `held` covers `needed`, directly or by implication. */
export function allows(held: ReadonlySet<Scope>, needed: Scope): boolean {
  if (held.has(needed)) return true
  const [resource, level] = needed.split(':') as [keyof typeof LEVELS, string]
  return level === 'read' && LEVELS[resource].some((other) => held.has(`${resource}:${other}` as Scope))
}
