import type { MemberRole } from '../../db/model/access/roles.ts'
import type { IconName } from './components/icon.tsx'
import { mayCall } from './forms/allowed.ts'

export interface SettingsPage {
  href: string
  label: string
  icon: IconName
  /** What one does there, for the overview. */
  about: string
  /** The operation that the page shows: who may not call it does not see the page. */
  operation?: string
}

export interface SettingsGroup {
  title: string
  pages: SettingsPage[]
}

/** The pages of the settings, in the order of the side bar and the overview. */
const GROUPS: SettingsGroup[] = [
  {
    title: 'Organization',
    pages: [
      {
        href: '/settings/organization',
        label: 'General',
        icon: 'building-2',
        about: 'Name, country, language, currency, time zone, and how long logs and runs are kept.',
        operation: 'getOrganization',
      },
      {
        href: '/settings/members',
        label: 'Members',
        icon: 'users',
        about: 'Who belongs to the organization, with which role, and who is invited.',
        operation: 'listMembers',
      },
      {
        href: '/settings/usage',
        label: 'Plan and usage',
        icon: 'gauge',
        about: 'What the plan allows, and what is used of it.',
        operation: 'getUsage',
      },
      {
        href: '/settings/audit-log',
        label: 'Audit log',
        icon: 'history',
        about: 'Who changed access and configuration, for a year.',
        operation: 'listAuditLog',
      },
    ],
  },
  {
    title: 'Data',
    pages: [
      {
        href: '/settings/custom-fields',
        label: 'Custom fields',
        icon: 'list',
        about: 'Fields of your own for each kind of record.',
      },
      {
        href: '/settings/pipelines',
        label: 'Pipelines',
        icon: 'square-kanban',
        about: 'The stages that deals go through.',
        operation: 'listPipelines',
      },
      {
        href: '/settings/exchange-rates',
        label: 'Exchange rates',
        icon: 'arrow-left-right',
        about: 'How amounts in several currencies are compared and added.',
        operation: 'listExchangeRates',
      },
    ],
  },
  {
    title: 'Automation',
    pages: [
      {
        href: '/settings/webhooks/incoming',
        label: 'Incoming webhooks',
        icon: 'inbox',
        about: 'Addresses that receive from forms and other services.',
        operation: 'listIncomingWebhooks',
      },
      {
        href: '/settings/webhooks/outgoing',
        label: 'Outgoing webhooks',
        icon: 'send',
        about: 'Services that are told of what happens here.',
        operation: 'listOutgoingWebhooks',
      },
      {
        href: '/settings/variables',
        label: 'Variables',
        icon: 'braces',
        about: 'Values that all workflows read, such as the address of a service.',
        operation: 'getOrganization',
      },
      {
        href: '/settings/secrets',
        label: 'Secrets',
        icon: 'lock',
        about: 'Tokens and passwords that nodes send to other services. Nobody can read them again.',
        operation: 'listSecrets',
      },
      {
        href: '/settings/mail-suppressions',
        label: 'Suppressed addresses',
        icon: 'mail',
        about: 'Who gets no mails of the workflows.',
        operation: 'listMailSuppressions',
      },
    ],
  },
  {
    title: 'Access',
    pages: [
      {
        href: '/settings/keys',
        label: 'API keys',
        icon: 'key-round',
        about: 'What programs send to be let in, and what each may do.',
        operation: 'listKeys',
      },
      {
        href: '/settings/assistants',
        label: 'Connected assistants',
        icon: 'users',
        about: 'Assistants that people have connected by signing in, and what each may do.',
        operation: 'listGrants',
      },
    ],
  },
  {
    title: 'You',
    pages: [
      {
        href: '/settings/account',
        label: 'Your account',
        icon: 'user',
        about: 'Your name and role, where you are signed in, and your password.',
      },
      {
        href: '/organizations',
        label: 'Organizations and mails',
        icon: 'arrow-left-right',
        about: 'The organizations that you belong to, and the mails that you get.',
      },
    ],
  },
]

/** The pages of the settings that a role may see. */
export const settingsFor = (role: MemberRole): SettingsGroup[] =>
  GROUPS.map(({ title, pages }) => ({
    title,
    pages: pages.filter(({ operation }) => operation === undefined || mayCall(role, operation)),
  })).filter(({ pages }) => pages.length > 0)

/** Whether a page is one of the settings, whose side bar they have. */
export const isSetting = (path: string): boolean =>
  path === '/settings' || path.startsWith('/settings/') || path === '/organizations'
