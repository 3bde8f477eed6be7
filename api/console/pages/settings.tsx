import { Card } from '../components/card.tsx'
import { Icon } from '../components/icon.tsx'
import { PageHeader } from '../components/page-header.tsx'
import type { ConsoleRoute } from '../route.ts'
import { settingsFor } from '../settings-pages.ts'

/** What can be set, by groups: what a role may not see is not there. */
export const settingsRoutes: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/settings',
    handler: async ({ session }) => ({
      title: 'Settings',
      content: (
        <>
          <PageHeader title="Settings" />
          {settingsFor(session!.role).map(({ title, pages }) => (
            <Card title={title} key={title} flush>
              <ul class="directory">
                {pages.map(({ href, label, icon, about }) => (
                  <li key={href}>
                    <a href={href}>
                      <Icon name={icon} />
                      <span>
                        <strong>{label}</strong>
                        <span class="muted">{about}</span>
                      </span>
                      <Icon name="chevron-right" />
                    </a>
                  </li>
                ))}
              </ul>
            </Card>
          ))}
        </>
      ),
    }),
  },
]
