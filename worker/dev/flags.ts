import { availableParallelism } from 'node:os'

/** A smaller young generation per isolate (the worker has several) saves some 50 MB when idle. */
const SMALL = ['--max-semi-space-size=4']

/**
 * On a machine of one or two processors: the threads with which V8 collects garbage would only take them from PostgreSQL,
 * Temporal and the api, and without them it takes less CPU time in all. With more processors they are free.
 */
const ALONE = availableParallelism() <= 2 ? ['--single-threaded-gc'] : []

/** The flags of Node.js for the processes that `npm start` starts. */
export const FLAGS = { api: SMALL, worker: [...SMALL, ...ALONE] }
