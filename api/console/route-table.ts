import { accountRoutes } from './pages/account.tsx'
import { accountPages } from './pages/account-page.tsx'
import { analyticsPages } from './pages/analytics.tsx'
import { analyticsExplorePages } from './pages/analytics-explore.tsx'
import { assistantPages } from './pages/assistants.tsx'
import { auditLogPages } from './pages/audit-log.tsx'
import { authorizePages } from './pages/authorize.tsx'
import { customFieldPages } from './pages/custom-fields.tsx'
import { dealBoardPages } from './pages/deal-board.tsx'
import { deletedRecordPages } from './pages/deleted-records.tsx'
import { deliveryPages } from './pages/deliveries.tsx'
import { designRoutes } from './pages/design.tsx'
import { duplicatePages } from './pages/duplicates.tsx'
import { exchangeRatePages } from './pages/exchange-rates.tsx'
import { exportPages } from './pages/export-list.tsx'
import { homeRoutes } from './pages/home.tsx'
import { importListPages } from './pages/import-list.tsx'
import { importPages } from './pages/import-page.tsx'
import { incomingLogPages } from './pages/incoming-logs.tsx'
import { incomingPages } from './pages/incoming-webhooks.tsx'
import { invitationPages } from './pages/invitations.tsx'
import { keyPages } from './pages/keys.tsx'
import { knowledgePages } from './pages/knowledge.tsx'
import { knowledgeCollectionPages } from './pages/knowledge-collection.tsx'
import { knowledgeDocumentPages } from './pages/knowledge-document.tsx'
import { knowledgeSearchPages } from './pages/knowledge-search.tsx'
import { mailSuppressionPages } from './pages/mail-suppressions.tsx'
import { memberPages } from './pages/member-page.tsx'
import { memberListPages } from './pages/members.tsx'
import { mergePages } from './pages/merge.tsx'
import { organizationPages } from './pages/organization.tsx'
import { outgoingPages } from './pages/outgoing-webhooks.tsx'
import { pipelinePages } from './pages/pipeline-page.tsx'
import { pipelineListPages } from './pages/pipelines.tsx'
import { recordFormPages } from './pages/record-form.tsx'
import { recordListPages } from './pages/record-list.tsx'
import { recordPages } from './pages/record-page.tsx'
import { reportPages } from './pages/reports.tsx'
import { resetRoutes } from './pages/reset.tsx'
import { runListPages } from './pages/run-list.tsx'
import { runPages } from './pages/run-page.tsx'
import { searchPages } from './pages/search.tsx'
import { secretPages } from './pages/secrets.tsx'
import { settingsRoutes } from './pages/settings.tsx'
import { signInRoutes } from './pages/sign-in.tsx'
import { signUpRoutes } from './pages/sign-up.tsx'
import { usagePages } from './pages/usage.tsx'
import { variablePages } from './pages/variables.tsx'
import { workflowListPages } from './pages/workflow-list.tsx'
import { workflowNodePages } from './pages/workflow-nodes.tsx'
import { workflowPages } from './pages/workflow-page.tsx'
import { workflowRunPages } from './pages/workflow-run.tsx'
import { workflowTemplatePages } from './pages/workflow-templates.tsx'
import { workflowTestPages } from './pages/workflow-test.tsx'
import { workflowVersionPages } from './pages/workflow-versions.tsx'
import type { ConsoleRoute } from './route.ts'

/** Every address of the console. To add a page, add a file to `pages/` and a line here. */
export const consoleRoutes: ConsoleRoute[] = [
  ...signInRoutes,
  ...signUpRoutes,
  ...resetRoutes,
  ...homeRoutes,
  ...searchPages,
  ...recordListPages,
  ...dealBoardPages,
  ...deletedRecordPages,
  ...duplicatePages,
  ...mergePages,
  ...recordFormPages,
  ...recordPages,
  ...importListPages,
  ...importPages,
  ...exportPages,
  ...workflowListPages,
  ...workflowTemplatePages,
  ...workflowNodePages,
  ...workflowPages,
  ...workflowVersionPages,
  ...workflowTestPages,
  ...workflowRunPages,
  ...runListPages,
  ...runPages,
  ...analyticsPages,
  ...analyticsExplorePages,
  ...reportPages,
  ...knowledgePages,
  ...knowledgeSearchPages,
  ...knowledgeCollectionPages,
  ...knowledgeDocumentPages,
  ...accountRoutes,
  ...settingsRoutes,
  ...organizationPages,
  ...memberListPages,
  ...invitationPages,
  ...memberPages,
  ...usagePages,
  ...auditLogPages,
  ...customFieldPages,
  ...pipelineListPages,
  ...pipelinePages,
  ...exchangeRatePages,
  ...variablePages,
  ...secretPages,
  ...mailSuppressionPages,
  ...accountPages,
  ...keyPages,
  ...assistantPages,
  ...authorizePages,
  ...incomingPages,
  ...incomingLogPages,
  ...outgoingPages,
  ...deliveryPages,
  ...designRoutes,
]
