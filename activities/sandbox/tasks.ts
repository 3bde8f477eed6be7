import { evaluate } from './evaluate.ts'

/** What the worker computes for a tenant in a thread. */
export const tasks = { evaluate }
