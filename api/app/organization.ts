import { z } from 'zod'
import { getOrganization, type Organization, updateOrganization } from '../../db/access/organization.ts'
import { changePlan, requirePlanChanges } from '../../db/access/plan-changes.ts'
import { PLANS } from '../../db/access/plans.ts'
import { isCurrency, isLocale } from '../../db/model/records/values.ts'
import { ENV } from '../../workflows/shared/limits.ts'
import { isPhoneCountry } from '../../workflows/shared/phone.ts'
import { isTimezone, NO_TIMEZONE } from '../../workflows/shared/timezone.ts'
import { ENV_NAME, ENV_NAME_RULE } from '../http/env-name.ts'
import { type AppRoute, appRoute } from '../http/route.ts'

const values = {
  name: z.string().trim().min(1).max(200),
  currency: z
    .string()
    .trim()
    .toUpperCase()
    .refine(isCurrency, 'must be an ISO 4217 code, such as USD')
    .describe('The default currency of amounts.'),
  timezone: z
    .string()
    .refine(isTimezone, NO_TIMEZONE)
    .describe('The time zone; `org.timezone` in workflows.'),
  country: z
    .string()
    .trim()
    .toUpperCase()
    .refine(isPhoneCountry, 'must be an ISO 3166 code of two letters, such as DE')
    .nullable()
    .describe('The country of phone numbers without a country code. Default: none; they stay as they are.'),
  locale: z
    .string()
    .trim()
    .max(35)
    .refine(isLocale, 'must be a BCP 47 tag, such as de-DE')
    .nullable()
    .describe('How exports write numbers: `de-DE` has `;` and a decimal comma. Default: commas and points.'),
  log_retention_days: z
    .int()
    .min(1)
    .max(3_650)
    .describe('The days for which webhook logs, events and deliveries are kept. Default: 30.'),
  run_retention_days: z
    .int()
    .min(1)
    .max(3_650)
    .describe('The days for which runs are kept after their end. Default: 90.'),
  strict_custom_fields: z.boolean().describe('Whether custom fields without a definition are refused.'),
}

const envValue = z.union([z.string().max(ENV.characters), z.number(), z.boolean()])
const envName = z.string().regex(ENV_NAME, ENV_NAME_RULE)

const organization = z
  .object({
    object: z.literal('organization'),
    id: z.uuid(),
    plan: z.enum(PLANS),
    ...values,
    env: z
      .record(z.string(), envValue)
      .describe(
        'The environment variables of workflows, which every node and trigger reads as `{{ env.<name> }}`. Not for secrets.',
      ),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Organization' })

const present = (found: Organization) => ({ object: 'organization', ...found })

export const organizationRoutes: AppRoute[] = [
  appRoute({
    method: 'GET',
    path: '/organization',
    role: 'member',
    id: 'getOrganization',
    tag: 'Organization',
    summary: 'Retrieve the organization',
    response: { status: 200, schema: organization },
    handler: async ({ tenant }) => present(await tenant(getOrganization)),
  }),
  appRoute({
    method: 'PATCH',
    path: '/organization',
    role: 'admin',
    id: 'updateOrganization',
    tag: 'Organization',
    summary: 'Update the organization',
    description: `Absent members are unchanged, also those of \`env\`: null removes one. \`env\` has at most ${ENV.count} members, with ${ENV.bytes} bytes as JSON. Workflows read the new values from their next segment on.`,
    body: z
      .strictObject({ ...values, env: z.record(envName, envValue.nullable()) })
      .partial()
      .meta({ id: 'OrganizationUpdate' }),
    response: { status: 200, schema: organization },
    example: {
      currency: 'EUR',
      strict_custom_fields: true,
      env: { crm_url: 'https://crm.example.com', vat: 0.081 },
    },
    handler: async ({ body, tenant }) => present(await tenant((tx) => updateOrganization(tx, body))),
  }),
  appRoute({
    method: 'PUT',
    path: '/organization/plan',
    role: 'owner',
    id: 'changePlan',
    tag: 'Organization',
    summary: 'Change the plan',
    description:
      'The limits of the new plan apply to the next request. Deliveries that were held for the quota are sent. If the plan allows fewer webhooks than exist, or lower rate limits than theirs, it is refused with `plan_limit` and a list of all exceeded limits. Exceeded monthly quotas are no reason to refuse it: until the end of the month, requests of incoming webhooks are blocked and deliveries held. Limits that the operator has set for the organization stay. 403 if the operator does not let owners change plans (`PLAN_CHANGES`).',
    body: z.strictObject({ plan: z.enum(PLANS) }).meta({ id: 'PlanChange' }),
    response: { status: 200, schema: organization },
    example: { plan: 'professional' },
    handler: async ({ body, tenant, deps }) =>
      present(
        await tenant(async (tx) => {
          await requirePlanChanges(tx, deps.config.PLAN_CHANGES)
          await changePlan(tx, body.plan)
          return getOrganization(tx)
        }),
      ),
  }),
]
