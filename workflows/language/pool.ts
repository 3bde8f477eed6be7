/**
 * Worker pools: workers near hosts that others cannot reach, which only make the calls of external nodes that name their
 * pool.
 */

/** The form of a pool's name. It becomes a part of a task queue's name and a label of metrics. */
export const POOL_NAME = /^[a-z][a-z0-9-]{0,39}$/
export const POOL_RULE = 'must be lower case letters, digits and hyphens, such as dmz'

/** As the pool of a node: the workers without a pool, whatever the settings of the workflow say. */
export const DEFAULT_POOL = 'default'

/** The name of a given pool; undefined for the workers without one. */
export const namedPool = (pool: string | undefined): string | undefined =>
  pool === DEFAULT_POOL ? undefined : pool
