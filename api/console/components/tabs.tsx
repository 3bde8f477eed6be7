/** The parts of a page that have addresses of their own. */
export function Tabs({
  label,
  tabs,
  current,
}: {
  label: string
  tabs: readonly { href: string; label: string }[]
  /** The address of the one that is shown. */
  current: string
}) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <a href={tab.href} key={tab.href} aria-current={tab.href === current ? 'page' : undefined}>
          {tab.label}
        </a>
      ))}
    </nav>
  )
}
