import { Facts } from '../components/card.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { type FormState, SchemaForm, textOf } from '../components/schema-form.tsx'
import { Time } from '../components/time.tsx'
import { mayCall } from '../forms/allowed.ts'
import { COUNTRY_CHOICES, CURRENCY_CHOICES, TIMEZONE_CHOICES } from '../forms/choices.ts'
import { errorsOf } from '../forms/errors.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import { storedBefore, toBody } from '../forms/to-body.ts'
import type { ConsoleRoute, Page, View } from '../route.ts'

type Organization = Record<string, unknown> & { name: string; created_at: string }

const HERE = '/settings/organization'
const NAMES = [
  'name',
  'country',
  'locale',
  'timezone',
  'currency',
  'log_retention_days',
  'run_retention_days',
  'strict_custom_fields',
]
const FIELDS = fieldsOf('updateOrganization', NAMES, {
  timezone: 'Time zone',
  locale: 'Language and region',
  log_retention_days: 'Days for which logs are kept',
  run_retention_days: 'Days for which runs are kept',
}).map((field) => (field.type === 'boolean' ? { ...field, initial: false } : field))

/** A choice and its stored value are of the list, or empty: a time zone cannot be emptied. */
const OPTIONS = { timezone: TIMEZONE_CHOICES, currency: CURRENCY_CHOICES, country: COUNTRY_CHOICES }
const MUST = ['name', 'timezone', 'currency', 'log_retention_days', 'run_retention_days']
const SHOWN = FIELDS.map((field) => ({ ...field, required: MUST.includes(field.name) }))

/** What holds for the whole organization. Members read it; admins change it. */
export const organizationPages: ConsoleRoute[] = [
  { method: 'GET', path: HERE, handler: async (view) => page(view, await read(view), {}) },
  {
    method: 'POST',
    path: HERE,
    async handler(view) {
      const { form, call } = view
      const answer = await call(
        'PATCH',
        '/app/organization',
        toBody(FIELDS, form, { stored: storedBefore(form) }),
      )
      if (answer.status < 400) return { redirect: `${HERE}?done=saved` }
      return page(view, await read(view), { typed: form, errors: errorsOf(answer, NAMES) }, answer.status)
    },
  },
]

const read = ({ read }: View) => read<Organization>('/app/organization')

const texts = (organization: Organization) =>
  Object.fromEntries(NAMES.map((name) => [name, textOf(organization[name])]))

function page({ session }: View, organization: Organization, state: FormState, status = 200): Page {
  const stored = texts(organization)
  return {
    title: 'General',
    status,
    content: (
      <>
        <PageHeader
          title="General"
          about="What holds for the whole organization: its records, workflows, files and mails."
        />
        {mayCall(session!.role, 'updateOrganization') ? (
          <SchemaForm
            action={HERE}
            fields={SHOWN}
            state={{ stored, ...state }}
            options={OPTIONS}
            button="Save"
            label="General"
          />
        ) : (
          <Facts
            of={[
              ...FIELDS.map(({ name, label }): [string, string | null] => [label, stored[name] || null]),
              ['Created', <Time at={organization.created_at} key="created" />],
            ]}
          />
        )}
      </>
    ),
  }
}
