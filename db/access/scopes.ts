/** Scopes: `<resource>:<level>`. Default deny; `write`, `author` and `run` each imply `read` on the same resource. */

const RECORD_RESOURCES = ['contacts', 'companies', 'deals', 'tasks', 'notes', 'activities'] as const

const LEVELS = {
  ...(Object.fromEntries(
    RECORD_RESOURCES.map((resource) => [resource, ['read', 'write']]),
  ) as unknown as Record<(typeof RECORD_RESOURCES)[number], readonly ['read', 'write']>),
  workflows: ['read', 'author', 'run'],
  knowledge: ['read', 'write'],
  analytics: ['read'],
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
