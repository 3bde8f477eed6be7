import type { ComponentChildren } from 'preact'

/** A part that scrolls by itself if it is wide or long: the keyboard can focus it. */
export function Scrollable({
  class: name,
  label,
  children,
}: {
  class: string
  label: string
  children: ComponentChildren
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    // biome-ignore lint/a11y/useSemanticElements: a section would need the role too, to be focusable
    <div class={name} role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  )
}
