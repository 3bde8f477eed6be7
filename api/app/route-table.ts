import type { AppRoute } from '../http/route.ts'
import { auditLogRoutes } from './audit-log.ts'
import { deliveryRoutes } from './deliveries.ts'
import { deliveryActionRoutes } from './delivery-actions.ts'
import { incomingWebhookRoutes } from './incoming-webhooks.ts'
import { invitationRoutes } from './invitations.ts'
import { keyRoutes } from './keys.ts'
import { memberRoutes } from './members.ts'
import { organizationRoutes } from './organization.ts'
import { outgoingReplayRoutes } from './outgoing-replays.ts'
import { outgoingWebhookRoutes } from './outgoing-webhooks.ts'
import { passwordResetRoutes } from './password-resets.ts'
import { secretRoutes } from './secrets.ts'
import { sessionRoutes } from './session.ts'
import { sessionsRoutes } from './sessions.ts'
import { signUpRoutes } from './sign-up.ts'
import { usageRoutes } from './usage.ts'

/** Every operation of /app. To add a resource, add a file beside this one and a line here. */
export const appRoutes: AppRoute[] = [
  ...signUpRoutes,
  ...sessionRoutes,
  ...sessionsRoutes,
  ...passwordResetRoutes,
  ...organizationRoutes,
  ...memberRoutes,
  ...invitationRoutes,
  ...auditLogRoutes,
  ...usageRoutes,
  ...keyRoutes,
  ...secretRoutes,
  ...incomingWebhookRoutes,
  ...outgoingWebhookRoutes,
  ...deliveryRoutes,
  ...deliveryActionRoutes,
  ...outgoingReplayRoutes,
]
