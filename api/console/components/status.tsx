import { Icon, type IconName } from './icon.tsx'

type Tone = 'grey' | 'blue' | 'amber' | 'green' | 'red'

const LOOKS: Record<string, [Tone, IconName]> = {
  queued: ['grey', 'circle-dashed'],
  skipped: ['grey', 'skip-forward'],
  cancelled: ['grey', 'ban'],
  terminated: ['grey', 'ban'],
  inactive: ['grey', 'pause'],
  draft: ['grey', 'circle-dashed'],
  revoked: ['grey', 'ban'],
  expired: ['grey', 'ban'],
  running: ['blue', 'loader'],
  delivering: ['blue', 'loader'],
  waiting: ['amber', 'clock'],
  paused: ['amber', 'pause'],
  held: ['amber', 'pause'],
  blocked: ['amber', 'ban'],
  unknown: ['amber', 'clock'],
  failing: ['amber', 'triangle-alert'],
  completed: ['green', 'circle-check'],
  succeeded: ['green', 'circle-check'],
  success: ['green', 'circle-check'],
  active: ['green', 'circle-check'],
  failed: ['red', 'circle-x'],
  lost: ['red', 'circle-x'],
}

/** The colour of a status; undefined: it is none. */
export const toneOf = (status: string): string | undefined => LOOKS[status.toLowerCase()]?.[0]

/** A status as an icon, a word and a colour: never as a colour alone. */
export function Status({ of: status }: { of: string }) {
  const [tone, icon] = LOOKS[status.toLowerCase()] ?? ['grey', 'circle-dashed']
  return (
    <span class={`status ${tone}`}>
      <Icon name={icon} />
      {status === 'DRAFT' ? 'draft' : status.toLowerCase()}
    </span>
  )
}
