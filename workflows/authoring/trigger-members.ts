/** The members of `trigger` in a run that an event starts: `record` or `data`, by the event. */
export const EVENT_MEMBERS = ['type', 'event', 'record', 'data', 'previous', 'changed']

/** The members that exist only if an event or a webhook starts the run. */
export const GIVEN_MEMBERS = [
  ...EVENT_MEMBERS.filter((member) => member !== 'type'),
  'payload',
  'headers',
  'query',
]

/** The members of all kinds of triggers, also of an error workflow. */
export const TRIGGER_MEMBERS = ['type', ...GIVEN_MEMBERS, 'run', 'node', 'error']
