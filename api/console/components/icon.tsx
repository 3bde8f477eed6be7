import { usePage } from '../context.ts'

export type IconName =
  | 'activity'
  | 'arrow-down'
  | 'arrow-up'
  | 'ban'
  | 'book-open'
  | 'building-2'
  | 'check'
  | 'chevron-right'
  | 'circle-check'
  | 'circle-dashed'
  | 'circle-x'
  | 'clock'
  | 'copy'
  | 'handshake'
  | 'house'
  | 'inbox'
  | 'key-round'
  | 'list'
  | 'loader'
  | 'log-out'
  | 'menu'
  | 'package'
  | 'palette'
  | 'pause'
  | 'play'
  | 'plus'
  | 'search'
  | 'send'
  | 'skip-forward'
  | 'square-check'
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
