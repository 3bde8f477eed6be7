import type { MemberRole } from '../../../db/model/access/roles.ts'
import { kindNames } from '../../../db/model/records/kinds/index.ts'
import { usePage } from '../context.ts'
import { labelOf } from '../forms/field-spec.ts'
import { isSetting, settingsFor } from '../settings-pages.ts'
import { Button } from './button.tsx'
import { Icon, type IconName } from './icon.tsx'
import { PostForm } from './post-form.tsx'

const KIND_ICONS: Record<string, IconName> = {
  contacts: 'user',
  companies: 'building-2',
  deals: 'handshake',
  tasks: 'square-check',
  notes: 'sticky-note',
  activities: 'activity',
  products: 'package',
  line_items: 'list',
  consents: 'circle-check',
}
export const iconOfKind = (kind: string): IconName => KIND_ICONS[kind] ?? 'sticky-note'

interface Entry {
  href: string
  label: string
  icon: IconName
}

const AUTOMATION: Entry[] = [
  { href: '/workflows', label: 'Workflows', icon: 'workflow' },
  { href: '/runs', label: 'Runs', icon: 'play' },
]
const INSIGHT: Entry[] = [
  { href: '/analytics', label: 'Analytics', icon: 'chart-column' },
  { href: '/knowledge', label: 'Knowledge', icon: 'library' },
]
const HOME: Entry = { href: '/', label: 'Home', icon: 'house' }
const SEARCH: Entry = { href: '/search', label: 'Search', icon: 'search' }
const FILES: Entry = { href: '/imports', label: 'Imports and exports', icon: 'inbox' }
const SETTINGS: Entry = { href: '/settings', label: 'Settings', icon: 'settings' }
const DOCUMENTATION: Entry = { href: '/docs/overview', label: 'Documentation', icon: 'book-open' }

/** The side bar; on narrow screens a menu at the top. The settings have one of their own. */
export function Navigation() {
  const { session, path } = usePage().view
  if (!session) return null
  const parts = isSetting(path) ? <SettingsParts role={session.role} /> : <MainParts />
  return (
    <aside class="side">
      <div class="wide">
        <Account />
        <nav aria-label="Main">{parts}</nav>
      </div>
      <details class="narrow">
        <summary>
          <Icon name="menu" /> Menu
          <span class="muted">{session.organization_name}</span>
        </summary>
        <nav aria-label="Main menu">{parts}</nav>
        <AccountForms />
      </details>
    </aside>
  )
}

function MainParts() {
  const records = kindNames.map((kind) => ({
    href: `/records/${kind}`,
    label: labelOf(kind),
    icon: iconOfKind(kind),
  }))
  return (
    <>
      <Section entries={[HOME, SEARCH]} />
      <Section title="Records" entries={[...records, FILES]} />
      <Section title="Automation" entries={AUTOMATION} />
      <Section title="Insight" entries={INSIGHT} />
      <Section entries={[SETTINGS, DOCUMENTATION]} />
    </>
  )
}

const SettingsParts = ({ role }: { role: MemberRole }) => (
  <>
    <Section entries={[HOME, SEARCH]} />
    {settingsFor(role).map(({ title, pages }) => (
      <Section key={title} title={title} entries={pages} />
    ))}
    <Section entries={[SETTINGS, DOCUMENTATION]} />
  </>
)

function Section({ title, entries }: { title?: string; entries: Entry[] }) {
  const { path } = usePage().view
  /** Home and the overview of the settings are no parents of the other pages. */
  const isHere = (href: string) =>
    [HOME.href, SETTINGS.href].includes(href) ? path === href : `${path}/`.startsWith(`${href}/`)
  return (
    <div class="nav-section">
      {title && <h2>{title}</h2>}
      <ul>
        {entries.map(({ href, label, icon }) => (
          <li key={href}>
            <a href={href} aria-current={isHere(href) ? 'page' : undefined}>
              <Icon name={icon} />
              {label}
            </a>
          </li>
        ))}
      </ul>
    </div>
  )
}

function Account() {
  const session = usePage().view.session!
  return (
    <details class="account">
      <summary>
        <span class="badge" aria-hidden="true">
          {[...session.organization_name][0]?.toUpperCase()}
        </span>
        <span class="names">
          <strong dir="auto" title={session.organization_name}>
            {session.organization_name}
          </strong>
          <span class="muted" dir="auto" title={session.email}>
            {session.user_name}, {session.role}
          </span>
        </span>
      </summary>
      <div class="popover">
        <AccountForms />
      </div>
    </details>
  )
}

const THEMES = ['system', 'light', 'dark'] as const

function AccountForms() {
  const { view } = usePage()
  return (
    <>
      <a class="button plain" href="/organizations">
        <Icon name="building-2" /> Organizations and mails
      </a>
      <PostForm action="/theme" class="themes" label="Theme">
        <input type="hidden" name="next" value={view.path} />
        {THEMES.map((theme) => (
          <button
            key={theme}
            type="submit"
            class="button plain"
            name="theme"
            value={theme}
            aria-pressed={view.theme === theme}
          >
            {theme}
          </button>
        ))}
      </PostForm>
      <PostForm action="/sign-out">
        <Button icon="log-out">Sign out</Button>
      </PostForm>
    </>
  )
}
