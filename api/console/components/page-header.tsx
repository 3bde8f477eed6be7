import type { ComponentChildren } from 'preact'

export interface Crumb {
  href: string
  label: string
}

/** The breadcrumb, the title, and at most one primary action. */
export function PageHeader(props: {
  title: ComponentChildren
  crumbs?: Crumb[]
  about?: ComponentChildren
  children?: ComponentChildren
}) {
  const { title, crumbs = [], about, children } = props
  return (
    <header class="page-header">
      {crumbs.length > 0 && (
        <nav class="crumbs" aria-label="Breadcrumb">
          {crumbs.map(({ href, label }) => (
            <a href={href} key={href}>
              {label}
            </a>
          ))}
        </nav>
      )}
      <div class="title-row">
        <h1>{title}</h1>
        {children && <div class="actions">{children}</div>}
      </div>
      {about && <p class="about">{about}</p>}
    </header>
  )
}
