import { labelOf } from '../forms/field-spec.ts'
import { kindOfObject, titleOf } from '../records/record.ts'
import type { List } from '../route.ts'
import { Icon, type IconName } from './icon.tsx'
import { iconOfKind } from './navigation.tsx'
import { Status } from './status.tsx'
import { Paging } from './table.tsx'
import { Time } from './time.tsx'

export interface TimelineEntry {
  type: string
  at: string
  data: Record<string, unknown>
}

/** What happened around a record, the newest first. `skip`: the record itself. */
export function Timeline({ entries, skip }: { entries: List<TimelineEntry>; skip: string }) {
  if (entries.data.length === 0) return <p class="muted">Nothing happened yet.</p>
  return (
    <>
      <ol class="timeline">
        {entries.data
          .filter(({ data }) => data.id !== skip)
          .map((entry, i) => (
            <li key={`${entry.at} ${i}`}>
              <Icon name={iconOf(entry)} />
              <div>
                {contentOf(entry)}
                <div class="when">
                  <Time at={entry.at} />
                </div>
              </div>
            </li>
          ))}
      </ol>
      {(entries.next_cursor || entries.total) && (
        <div>
          <Paging list={entries} />
        </div>
      )}
    </>
  )
}

const ICONS: Record<string, IconName> = { change: 'circle-dashed', run: 'play', delivery: 'send' }

function iconOf({ type }: TimelineEntry): IconName {
  return ICONS[type] ?? iconOfKind(kindOfObject(type) ?? '')
}

function contentOf({ type, data }: TimelineEntry) {
  if (type === 'change') return <Change of={data as unknown as History} />
  if (type === 'run')
    return (
      <div>
        Run of <a href={`/runs/${data.run_id}`}>{String(data.workflow_name)}</a>{' '}
        <Status of={String(data.status)} />
      </div>
    )
  if (type === 'delivery')
    return (
      <div>
        <a href={`/settings/deliveries/${data.id}`}>{String(data.event)}</a> was sent{' '}
        <Status of={String(data.status)} />
      </div>
    )
  const kind = kindOfObject(type)
  return (
    <>
      <div>
        <span class="muted">{labelOf(String(type === 'activity' ? data.type : type))}</span>{' '}
        <a href={`/records/${kind}/${data.id}`} dir="auto">
          {titleOf(data)}
        </a>
        {typeof data.status === 'string' && <span class="muted"> {data.status.replace('_', ' ')}</span>}
      </div>
      {typeof data.body === 'string' && data.body !== titleOf(data) && <p dir="auto">{clipped(data.body)}</p>}
    </>
  )
}

/** A note may have a megabyte. */
const MAX_SHOWN = 600

const clipped = (text: string) => (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text)

interface History {
  action: string
  actor: { type: string } | null
  changes: Record<string, { from: unknown; to: unknown }>
}

/** Changes of one save; more are in the history of the API. */
const MOST_CHANGES = 12

function Change({ of: { action, actor, changes } }: { of: History }) {
  const all = Object.entries(changes ?? {})
  const by = actor ? ` by a ${actor.type.replace('_', ' ')}` : ''
  const isNew = action === 'created'
  return (
    <>
      <div class="muted">{`${labelOf(action)}${by}`}</div>
      {!isNew && all.length > 0 && (
        <div class="change">
          {all.slice(0, MOST_CHANGES).map(([name, { from, to }]) => (
            <>
              <span class="muted">{labelOf(name)}</span>
              <span dir="auto">
                {shown(from) && (
                  <>
                    <del>{shown(from)}</del> →{' '}
                  </>
                )}
                <ins>{shown(to) || '(empty)'}</ins>
              </span>
            </>
          ))}
        </div>
      )}
    </>
  )
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return ''
  return clipped(typeof value === 'string' ? value : JSON.stringify(value))
}
