import { accountRoutes } from './pages/account.tsx'
import { assistantPages } from './pages/assistants.tsx'
import { authorizePages } from './pages/authorize.tsx'
import { deliveryPages } from './pages/deliveries.tsx'
import { designRoutes } from './pages/design.tsx'
import { homeRoutes } from './pages/home.tsx'
import { incomingLogPages } from './pages/incoming-logs.tsx'
import { incomingPages } from './pages/incoming-webhooks.tsx'
import { keyPages } from './pages/keys.tsx'
import { outgoingPages } from './pages/outgoing-webhooks.tsx'
import { recordFormPages } from './pages/record-form.tsx'
import { recordListPages } from './pages/record-list.tsx'
import { recordPages } from './pages/record-page.tsx'
import { resetRoutes } from './pages/reset.tsx'
import { runListPages } from './pages/run-list.tsx'
import { runPages } from './pages/run-page.tsx'
import { signInRoutes } from './pages/sign-in.tsx'
import { signUpRoutes } from './pages/sign-up.tsx'
import { workflowListPages } from './pages/workflow-list.tsx'
import { workflowPages } from './pages/workflow-page.tsx'
import { workflowRunPages } from './pages/workflow-run.tsx'
import { workflowVersionPages } from './pages/workflow-versions.tsx'
import type { ConsoleRoute } from './route.ts'

/** Every address of the console. To add a page, add a file to `pages/` and a line here. */
export const consoleRoutes: ConsoleRoute[] = [
  ...signInRoutes,
  ...signUpRoutes,
  ...resetRoutes,
  ...homeRoutes,
  ...recordListPages,
  ...recordFormPages,
  ...recordPages,
  ...workflowListPages,
  ...workflowPages,
  ...workflowVersionPages,
  ...workflowRunPages,
  ...runListPages,
  ...runPages,
  ...accountRoutes,
  ...keyPages,
  ...assistantPages,
  ...authorizePages,
  ...incomingPages,
  ...incomingLogPages,
  ...outgoingPages,
  ...deliveryPages,
  ...designRoutes,
]
