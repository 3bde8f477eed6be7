import { mergeableKinds, pascalCase, RECORD_KINDS } from '../../workflows/shared/record-kinds.ts'

/**
 * Every kind of work that a tenant chooses, with the node types and the routes that do it, if they do. A new node type,
 * or a new route with a body or a query, joins a kind here or is declared free of such work below: `computation.test.ts`.
 */
export interface Work {
  nodes?: readonly string[]
  /** Operation ids; those of `/app/…` and of `…WithKey` are the same route. */
  routes?: readonly string[]
  /**
   * How it is bounded: a `thread` computes it, which the attacks count; it yields in `turns`; the `steps` are bounded
   * before they are made; PostgreSQL does it in one `statement` with a time limit.
   */
  by: 'thread' | 'turns' | 'steps' | 'statement'
}

const PLURALS = [
  'Contacts',
  'Companies',
  'Deals',
  'Tasks',
  'Notes',
  'Activities',
  'Products',
  'LineItems',
  'Consents',
]
const SINGULARS = ['Contact', 'Company', 'Deal', 'Task', 'Note', 'Activity', 'Product', 'LineItem', 'Consent']

export const WORK = {
  specs: {
    routes: [
      'validateWorkflow',
      'createWorkflow',
      'updateWorkflow',
      'importTemplate',
      'diffWorkflowVersions',
    ],
    by: 'thread',
  },
  documents: {
    nodes: ['knowledge_add'],
    routes: [
      'createKnowledgeDocument',
      'updateKnowledgeDocument',
      'uploadKnowledgeDocument',
      'fetchKnowledgeDocument',
    ],
    by: 'thread',
  },
  code: { nodes: ['code'], by: 'thread' },
  json: { nodes: ['parse_json'], by: 'thread' },
  mapping: {
    routes: [
      'receiveWebhook',
      'createIncomingWebhook',
      'updateIncomingWebhook',
      'testIncomingWebhook',
      'proposeIncomingMapping',
      'previewIncomingMapping',
      'createIncomingReplay',
    ],
    by: 'thread',
  },
  /** What the sources of incoming webhooks answer when they are polled: feeds, lists, mails. */
  sources: { by: 'thread' },
  csv: { nodes: ['parse_csv'], routes: ['uploadImportFile', 'startImport'], by: 'turns' },
  placeholders: {
    nodes: [
      'set_fields',
      'render_text',
      'format_date',
      'condition',
      'switch',
      'send_email',
      'api_request',
      'send_webhook',
      'slack_message',
      'ai_prompt',
      'emit_event',
      'respond',
      'approval',
      'run_workflow',
      'stop',
    ],
    routes: [
      'testNode',
      'testNodeOfWorkflow',
      'testWorkflow',
      'runWorkflow',
      'runWorkflowByName',
      'createOutgoingWebhook',
      'updateOutgoingWebhook',
    ],
    by: 'steps',
  },
  lists: {
    nodes: ['for_each', 'repeat', 'filter_items', 'sort_items', 'aggregate_items', 'split_text', 'hash'],
    by: 'steps',
  },
  records: {
    nodes: ['crm_manager'],
    routes: [
      ...SINGULARS.flatMap((one) => [`create${one}`, `update${one}`]),
      ...PLURALS.map((many) => `batch${many}`),
    ],
    by: 'steps',
  },
  searches: {
    nodes: ['knowledge_search'],
    routes: [
      ...PLURALS.map((many) => `list${many}`),
      'listAssociatedRecords',
      'listContactDuplicates',
      'listCompanyDuplicates',
      'createExport',
      'eraseContact',
      ...PLURALS.map((many) => `bulk${many}`),
      'createView',
      'updateView',
      'createList',
      'updateList',
      'searchKnowledge',
    ],
    by: 'statement',
  },
  analytics: {
    nodes: ['analytics_query'],
    routes: [
      'queryAnalytics',
      ...['Pipeline', 'Records', 'Activities', 'Workflows', 'Webhooks'].map((name) => `get${name}Analytics`),
      'getReport',
    ],
    by: 'statement',
  },
} as const satisfies Record<string, Work>

export type WorkName = keyof typeof WORK

/** What computes nothing that grows with its input: small values with limits of their own. */
export const FREE = {
  nodes: [
    'format_phone',
    'key_value',
    'people',
    'delay',
    'wait_until',
    'wait_for_event',
    'wait_for_signal',
    'convert_currency',
  ],
  routes: [
    ...mergeableKinds.map((kind) => `merge${pascalCase(RECORD_KINDS[kind])}`),
    'listRecordHistory',
    'listTimeline',
    'createAssociation',
    'listUsers',
    // `expand` shows a bounded number of records.
    'getContact',
    'getCompany',
    'getDeal',
    'getTask',
    'getNote',
    'getActivity',
    'getProduct',
    'getLineItem',
    'getConsent',
    'removeMember',
    'listImports',
    'createImport',
    'listExports',
    'listViews',
    'listLists',
    'changeListMembers',
    'listReports',
    'createReport',
    'updateReport',
    'listBulkJobs',
    'undoBulkJob',
    'listErasures',
    'listExchangeRates',
    'setExchangeRates',
    'undoImport',
    'revertRecord',
    'listFiles',
    'uploadFile',
    'listCustomFields',
    'createCustomField',
    'updateCustomField',
    'deleteCustomField',
    'createPipeline',
    'updatePipeline',
    'deletePipeline',
    'listWorkflows',
    'listWorkflowVersions',
    'duplicateWorkflow',
    'activateWorkflow',
    'deactivateWorkflow',
    'pauseSchedule',
    'backfillWorkflow',
    'putSample',
    'listNodeTypes',
    'getAuthoringGuide',
    'listTemplates',
    'listRuns',
    'getRun',
    'listIterations',
    'signalRun',
    'retryRun',
    'migrateRun',
    'createRunBatch',
    'listKnowledgeCollections',
    'createKnowledgeCollection',
    'updateKnowledgeCollection',
    'setKnowledgeEmbedding',
    'listKnowledgeDocuments',
    'listIncomingWebhooks',
    'rotateIncomingWebhookSecret',
    'captureIncomingWebhookSample',
    'listIncomingWebhookLogs',
    'exportIncomingWebhookLogs',
    'listOutgoingWebhooks',
    'rotateOutgoingWebhookSecret',
    'testOutgoingWebhook',
    'listDeliveries',
    'listAllDeliveries',
    'rescheduleDelivery',
    'retargetDelivery',
    'createReplay',
    'signUp',
    'confirmSignUp',
    'signIn',
    'switchOrganization',
    'listSessions',
    'requestPasswordReset',
    'resetPassword',
    'updateOrganization',
    'changePlan',
    'listMembers',
    'updateMember',
    'updatePreferences',
    'listInvitations',
    'createInvitation',
    'acceptInvitation',
    'listAuditLog',
    'listKeys',
    'createKey',
    'updateKey',
    'rotateKey',
    'listSecrets',
    'putSecret',
    'listMailSuppressions',
    'addMailSuppression',
  ],
} as const

/** The hand-overs that an attack of this kind must cause. */
export const isInThread = ({ kind }: { kind: WorkName }): boolean => WORK[kind].by === 'thread'
