import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common'
import { ORGANIZATION_ATTRIBUTE, STATE_ATTRIBUTE } from '../workflows/bundle/protocol.ts'

const keyword = (name: string) => defineSearchAttributeKey(name, SearchAttributeType.KEYWORD)

/** Search attributes of runs, deliveries and files in the Temporal UI. No personal data: every user there sees them. */
export const searchAttributes = {
  organization: keyword(ORGANIZATION_ATTRIBUTE),
  workflow: keyword('AgxWorkflow'),
  workflowName: keyword('AgxWorkflowName'),
  record: keyword('AgxRecord'),
  endpoint: keyword('AgxEndpoint'),
  trigger: keyword('AgxTrigger'),
  /** Set on runs that wait for a person. */
  state: keyword(STATE_ATTRIBUTE),
}
