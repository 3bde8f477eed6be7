/** The members of `trigger` in a run that an event starts: `record` or `data`, by the event. */
export const EVENT_MEMBERS = ['type', 'event', 'record', 'data', 'previous', 'changed']

/** Those that exist where an event or a webhook starts the run, and not where a person does. */
export const GIVEN_MEMBERS = [...EVENT_MEMBERS.filter((member) => member !== 'type'), 'payload']

/** Of every kind of trigger, that of an error workflow included. */
export const TRIGGER_MEMBERS = ['type', ...GIVEN_MEMBERS, 'run', 'node', 'error']
