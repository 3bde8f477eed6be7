import type { AppRoute } from '../http/route.ts'
import { auditLogRoutes } from './audit-log.ts'
import { grantRoutes } from './grants.ts'
import { invitationRoutes } from './invitations.ts'
import { keyRoutes } from './keys.ts'
import { mailSuppressionRoutes } from './mail-suppressions.ts'
import { memberRoutes } from './members.ts'
import { organizationRoutes } from './organization.ts'
import { passwordResetRoutes } from './password-resets.ts'
import { preferenceRoutes } from './preferences.ts'
import { secretRoutes } from './secrets.ts'
import { sessionRoutes } from './session.ts'
import { sessionsRoutes } from './sessions.ts'
import { signUpRoutes } from './sign-up.ts'
import { usageRoutes } from './usage.ts'
import { webhookRoutes } from './webhooks.ts'

/** Every operation of /app. To add a resource, add a file beside this one and a line here. */
export const appRoutes: AppRoute[] = [
  ...signUpRoutes,
  ...sessionRoutes,
  ...sessionsRoutes,
  ...passwordResetRoutes,
  ...organizationRoutes,
  ...memberRoutes,
  ...preferenceRoutes,
  ...invitationRoutes,
  ...auditLogRoutes,
  ...usageRoutes,
  ...keyRoutes,
  ...grantRoutes,
  ...secretRoutes,
  ...mailSuppressionRoutes,
  ...webhookRoutes,
]
