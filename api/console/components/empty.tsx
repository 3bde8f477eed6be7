import type { ComponentChildren } from 'preact'
import { Icon, type IconName } from './icon.tsx'

/** An empty list: what belongs here, why one would want it, and how to begin. */
export function Empty(props: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={props.icon} />
      <h2>{props.title}</h2>
      {props.children}
    </div>
  )
}
