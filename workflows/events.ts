/** An event that the service itself raises. To add one: a line below, and the code that inserts it. */
export interface ServiceEvent {
  name: string
  title: string
  /** What `data` is: a record of this kind, or a run. */
  subject: 'contact' | 'company' | 'deal' | 'task' | 'note' | 'activity' | 'run'
}

const KINDS = ['contact', 'company', 'deal', 'task', 'note', 'activity'] as const

/** The catalogue; any other `<entity>.<action>` can be raised by an `emit_event` node. */
export const SERVICE_EVENTS: readonly ServiceEvent[] = [
  ...KINDS.flatMap((kind) =>
    ['created', 'updated', 'deleted', 'restored'].map((action) => ({
      name: `${kind}.${action}`,
      title: `${kind === 'activity' ? 'An' : 'A'} ${kind} was ${action}`,
      subject: kind,
    })),
  ),
  { name: 'deal.stage_changed', title: 'A deal moved to another stage', subject: 'deal' },
  { name: 'deal.won', title: 'A deal was won', subject: 'deal' },
  { name: 'deal.lost', title: 'A deal was lost', subject: 'deal' },
  { name: 'task.assigned', title: 'A task was assigned', subject: 'task' },
  { name: 'task.completed', title: 'A task was completed', subject: 'task' },
  { name: 'contact.merged', title: 'A contact was merged into another', subject: 'contact' },
  { name: 'workflow.started', title: 'A run started', subject: 'run' },
  { name: 'workflow.completed', title: 'A run completed', subject: 'run' },
  { name: 'workflow.failed', title: 'A run failed', subject: 'run' },
]

/** `<entity>.<action>`, such as `invoice.paid`. */
export const EVENT_NAME = /^[a-z][a-z0-9_]{0,63}\.[a-z][a-z0-9_]{0,63}$/

/** Whether the service raises it, so that nobody else may. */
export const isServiceEvent = (name: string) => SERVICE_EVENTS.some((event) => event.name === name)
