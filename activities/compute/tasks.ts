import { passagesOf } from '../../db/model/knowledge/passages.ts'
import { computations } from '../../workflows/nodes/computations.ts'

/** What light nodes have computed for them. All are pure. */
export const tasks = { ...computations, passagesOf }
