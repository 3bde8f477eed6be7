import { usePage } from '../context.ts'

export type IconName =
  | 'activity'
  | 'arrow-down'
  | 'arrow-left-right'
  | 'arrow-up'
  | 'ban'
  | 'book-open'
  | 'braces'
  | 'building-2'
  | 'chart-column'
  | 'check'
  | 'chevron-right'
  | 'circle-check'
  | 'circle-dashed'
  | 'circle-x'
  | 'clock'
  | 'copy'
  | 'file-text'
  | 'gauge'
  | 'handshake'
  | 'history'
  | 'house'
  | 'inbox'
  | 'key-round'
  | 'library'
  | 'list'
  | 'loader'
  | 'lock'
  | 'log-out'
  | 'mail'
  | 'menu'
  | 'package'
  | 'palette'
  | 'pause'
  | 'play'
  | 'plus'
  | 'search'
  | 'send'
  | 'settings'
  | 'skip-forward'
  | 'square-check'
  | 'square-kanban'
  | 'sticky-note'
  | 'triangle-alert'
  | 'user'
  | 'users'
  | 'workflow'
  | 'x'

/** An icon beside a word, which says the same: screen readers skip it. */
export function Icon({ name }: { name: IconName }) {
  const { assets } = usePage()
  return (
    <svg class="icon" aria-hidden="true" width="16" height="16">
      <use href={`${assets.icons}#${name}`} />
    </svg>
  )
}
