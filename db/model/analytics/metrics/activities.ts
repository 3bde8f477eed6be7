import { type Metric, secondsBetween } from '../metric.ts'
import { RECORDS } from '../sources.ts'

const activities = { subject: 'activities', source: RECORDS.activities, time: 'occurred_at' } as const
const tasks = { subject: 'activities', source: RECORDS.tasks } as const

const OPEN = "t.status not in ('done', 'cancelled')"
const DONE = "t.status = 'done'"

/** Activities, and the work on tasks. */
export const ACTIVITY_METRICS: Metric[] = [
  {
    ...activities,
    name: 'activities.count',
    unit: 'count',
    description: 'The activities, by the time at which they took place.',
    measure: { type: 'count' },
  },
  {
    ...activities,
    name: 'activities.duration',
    unit: 'seconds',
    description: 'The total duration of the activities that have one.',
    measure: { type: 'sum', of: 't.duration_seconds' },
  },
  {
    ...activities,
    name: 'activities.duration_average',
    unit: 'seconds',
    description: 'The average duration of the activities that have one.',
    measure: { type: 'average', of: 't.duration_seconds' },
  },
  {
    ...tasks,
    name: 'tasks.open',
    unit: 'count',
    description: 'The tasks that are neither done nor cancelled; the period refers to their creation.',
    time: 'created_at',
    present: true,
    where: OPEN,
    measure: { type: 'count' },
  },
  {
    ...tasks,
    name: 'tasks.overdue',
    unit: 'count',
    description: 'The open tasks whose due time has passed, by that time.',
    time: 'due_at',
    present: true,
    where: `${OPEN} and t.due_at < now()`,
    measure: { type: 'count' },
  },
  {
    ...tasks,
    name: 'tasks.completed',
    unit: 'count',
    description: 'The completed tasks, by completion time.',
    time: 'completed_at',
    where: DONE,
    measure: { type: 'count' },
  },
  {
    ...tasks,
    name: 'tasks.days_to_complete',
    unit: 'days',
    description: 'The average time from the creation to the completion of a task.',
    time: 'completed_at',
    where: DONE,
    measure: { type: 'average', of: `${secondsBetween('created_at', 'completed_at')} / 86400` },
  },
  {
    ...tasks,
    name: 'tasks.completion_rate',
    unit: 'percent',
    description:
      'The completed tasks, in percent of those that were due in the period and are not cancelled.',
    time: 'due_at',
    where: "t.status <> 'cancelled' and t.due_at <= now()",
    measure: { type: 'rate', is: DONE },
  },
  {
    ...tasks,
    name: 'tasks.on_time_rate',
    unit: 'percent',
    description:
      'The tasks completed by their due time, in percent of those that were due in the period and are not cancelled.',
    time: 'due_at',
    where: "t.status <> 'cancelled' and t.due_at <= now()",
    measure: { type: 'rate', is: `${DONE} and t.completed_at <= t.due_at` },
  },
]
