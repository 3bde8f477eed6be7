/**
 * SQL: the end of the lease of an attempt on its slot, taken or renewed now. The worker renews it while the request is
 * in flight (`activities/hold-slot.ts`): the slot of a dead worker is free after this time, although Temporal repeats
 * the attempt only later.
 */
export const SLOT_END = `now() + interval '6 seconds'`

/** SQL: the end of the lease of a started delivery whose first attempt has not begun. */
export const START_END = `now() + interval '10 seconds'`
