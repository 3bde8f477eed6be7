import type { Route } from '../http/route.ts'
import { analyticsRoutes } from './analytics.ts'
import { associationRoutes } from './associations.ts'
import { authoringGuideRoutes } from './authoring-guide.ts'
import { batchRoutes } from './batch.ts'
import { bulkRoutes } from './bulk.ts'
import { contactExportRoutes } from './contact-export.ts'
import { customFieldRoutes } from './custom-fields.ts'
import { duplicateRoutes } from './duplicates.ts'
import { erasureRoutes } from './erasures.ts'
import { eventRoutes } from './events.ts'
import { exchangeRateRoutes } from './exchange-rates.ts'
import { exportRoutes } from './exports.ts'
import { fileRoutes } from './files.ts'
import { importRoutes } from './imports.ts'
import { knowledgeCollectionRoutes } from './knowledge-collections.ts'
import { knowledgeDocumentRoutes } from './knowledge-documents.ts'
import { knowledgeSearchRoutes } from './knowledge-search.ts'
import { listRoutes } from './lists.ts'
import { meRoutes } from './me.ts'
import { migrateRunRoutes } from './migrate-run.ts'
import { nodeTestRoutes } from './node-tests.ts'
import { nodeRoutes } from './nodes.ts'
import { objectSchemaRoutes } from './object-schemas.ts'
import { objectRoutes } from './objects.ts'
import { pipelineRoutes } from './pipelines.ts'
import { recordLifeRoutes } from './record-life.ts'
import { reportRoutes } from './reports.ts'
import { retryRunRoutes } from './retry-run.ts'
import { runBatchRoutes } from './run-batches.ts'
import { runStreamRoutes } from './run-stream.ts'
import { runWorkflowRoutes } from './run-workflow.ts'
import { runRoutes } from './runs.ts'
import { sampleRoutes } from './samples.ts'
import { scheduleRoutes } from './schedules.ts'
import { templateRoutes } from './templates.ts'
import { timelineRoutes } from './timeline.ts'
import { userRoutes } from './users.ts'
import { viewRoutes } from './views.ts'
import { webhookRoutes } from './webhooks.ts'
import { workflowTestRoutes } from './workflow-tests.ts'
import { workflowVersionRoutes } from './workflow-versions.ts'
import { workflowRoutes } from './workflows.ts'

/** Every operation of /v1, in reference order. To add a resource, add a file beside this one and a line here. */
export const routes: Route[] = [
  ...meRoutes,
  ...userRoutes,
  ...objectRoutes,
  ...recordLifeRoutes,
  ...timelineRoutes,
  ...contactExportRoutes,
  ...erasureRoutes,
  ...duplicateRoutes,
  ...batchRoutes,
  ...bulkRoutes,
  ...objectSchemaRoutes,
  ...associationRoutes,
  ...fileRoutes,
  ...customFieldRoutes,
  ...pipelineRoutes,
  ...exchangeRateRoutes,
  ...viewRoutes,
  ...listRoutes,
  ...importRoutes,
  ...exportRoutes,
  ...workflowRoutes,
  ...workflowVersionRoutes,
  ...runWorkflowRoutes,
  ...scheduleRoutes,
  ...nodeTestRoutes,
  ...sampleRoutes,
  ...workflowTestRoutes,
  ...runRoutes,
  ...runStreamRoutes,
  ...retryRunRoutes,
  ...migrateRunRoutes,
  ...runBatchRoutes,
  ...nodeRoutes,
  ...authoringGuideRoutes,
  ...templateRoutes,
  ...eventRoutes,
  ...analyticsRoutes,
  ...reportRoutes,
  ...knowledgeCollectionRoutes,
  ...knowledgeDocumentRoutes,
  ...knowledgeSearchRoutes,
  ...webhookRoutes,
]
