import { z } from 'zod'
import { changePreferences, getPreferences } from '../../db/access/preferences.ts'
import { type AppRoute, appRoute } from '../http/route.ts'
import { sessionOf } from './session-caller.ts'

const tag = 'Members'

const values = {
  task_reminder_mails: z
    .boolean()
    .describe('Whether the reminders of tasks that are assigned to you are mailed to you. Default: false.'),
}

const preferences = z.object({ object: z.literal('preferences'), ...values }).meta({ id: 'Preferences' })

/** What a member wants in the organization of the session. */
export const preferenceRoutes: AppRoute[] = [
  appRoute({
    method: 'GET',
    path: '/preferences',
    role: 'member',
    id: 'getPreferences',
    tag,
    summary: 'Retrieve your preferences',
    description: 'Your own, in the organization of the session.',
    response: { status: 200, schema: preferences },
    handler: async ({ caller, tenant }) => ({
      object: 'preferences',
      ...(await tenant((tx) => getPreferences(tx, sessionOf(caller).user_id))),
    }),
  }),
  appRoute({
    method: 'PATCH',
    path: '/preferences',
    role: 'member',
    id: 'updatePreferences',
    tag,
    summary: 'Change your preferences',
    description: 'Absent members are unchanged. Mails count as recipients of the plan.',
    body: z.strictObject(values).partial().meta({ id: 'PreferencesUpdate' }),
    example: { task_reminder_mails: true },
    response: { status: 200, schema: preferences },
    handler: async ({ body, caller, tenant }) => ({
      object: 'preferences',
      ...(await tenant((tx) => changePreferences(tx, sessionOf(caller).user_id, body))),
    }),
  }),
]
