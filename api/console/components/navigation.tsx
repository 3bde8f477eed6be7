import { includesRole } from '../../../db/model/access/roles.ts'
import { kindNames } from '../../../db/model/records/kinds/index.ts'
import { usePage } from '../context.ts'
import { labelOf } from '../forms/field-spec.ts'
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
const SETTINGS: Entry[] = [
  { href: '/settings/webhooks/incoming', label: 'Incoming webhooks', icon: 'inbox' },
  { href: '/settings/webhooks/outgoing', label: 'Outgoing webhooks', icon: 'send' },
  { href: '/settings/assistants', label: 'Connected assistants', icon: 'users' },
]
const KEYS: Entry = { href: '/settings/keys', label: 'API keys', icon: 'key-round' }

/** The side bar; on narrow screens a menu at the top. */
export function Navigation() {
  const { session } = usePage().view
  if (!session) return null
  const records = kindNames.map((kind) => ({
    href: `/records/${kind}`,
    label: labelOf(kind),
    icon: iconOfKind(kind),
  }))
  const settings = includesRole(session.role, 'admin') ? [...SETTINGS, KEYS] : SETTINGS
  const parts = (
    <>
      <Section entries={[{ href: '/', label: 'Home', icon: 'house' }]} />
      <Section title="Records" entries={records} />
      <Section title="Automation" entries={AUTOMATION} />
      <Section title="Settings" entries={settings} />
      <Section entries={[{ href: '/docs/overview', label: 'Documentation', icon: 'book-open' }]} />
    </>
  )
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

function Section({ title, entries }: { title?: string; entries: Entry[] }) {
  const { path } = usePage().view
  const isHere = (href: string) => (href === '/' ? path === '/' : `${path}/`.startsWith(`${href}/`))
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
