import type { ComponentChildren } from 'preact'
import { Copyable } from './code.tsx'

/** A secret in the one page that ever shows it. */
export function Secret({
  label,
  text,
  children,
}: {
  label: string
  text: string
  children?: ComponentChildren
}) {
  return (
    <div class="notice amber secret" role="status">
      <p>
        <strong>{label}</strong>: copy it now. It is shown only once.
      </p>
      <Copyable text={text} label={label.toLowerCase()} />
      {children}
    </div>
  )
}
