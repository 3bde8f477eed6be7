/** The codes that depend on the organization and the service; `test/api/v1/organization-findings.test.ts` finds each. */
export const ORGANIZATION_CODES = [
  'unknown_pool',
  'unknown_workflow',
  'draft_workflow',
  'unraised_event',
  'unlike_sample',
  'workflow_inputs',
  'workflow_outputs',
  'unknown_secret',
  'unknown_env',
  'unknown_custom_field',
  'reads_mask',
  'service_not_configured',
]
