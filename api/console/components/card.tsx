import type { ComponentChildren } from 'preact'

/** A part of a page with a title. */
export function Card(props: {
  title?: ComponentChildren
  actions?: ComponentChildren
  children: ComponentChildren
  flush?: boolean
}) {
  return (
    <section class={props.flush ? 'card flush' : 'card'}>
      {props.title && (
        <header>
          <h2>{props.title}</h2>
          {props.actions && <div class="actions">{props.actions}</div>}
        </header>
      )}
      {props.children}
    </section>
  )
}

/** Names and values, one pair a line. */
export function Facts({ of: pairs }: { of: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {pairs.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value ?? <span class="muted">–</span>}</dd>
        </div>
      ))}
    </dl>
  )
}
