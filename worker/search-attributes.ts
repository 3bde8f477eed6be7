import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common'
import {
  EXPECTED_BY_ATTRIBUTE,
  ORGANIZATION_ATTRIBUTE,
  STATE_ATTRIBUTE,
} from '../workflows/bundle/protocol.ts'

const keyword = (name: string) => defineSearchAttributeKey(name, SearchAttributeType.KEYWORD)

/** Search attributes of runs, deliveries and files in the Temporal UI. No personal data: every user there sees them. */
export const searchAttributes = {
  organization: keyword(ORGANIZATION_ATTRIBUTE),
  workflow: keyword('AgxWorkflow'),
  workflowName: keyword('AgxWorkflowName'),
  record: keyword('AgxRecord'),
  endpoint: keyword('AgxEndpoint'),
  trigger: keyword('AgxTrigger'),
  /** The time after which an open run is late, so that a query finds late runs; a migration changes it. */
  expectedBy: defineSearchAttributeKey(EXPECTED_BY_ATTRIBUTE, SearchAttributeType.DATETIME),
  /** Set on runs that wait for a person. */
  state: keyword(STATE_ATTRIBUTE),
}

/** The attributes as `temporal` registers them: `AgxWorkflow=Keyword`. */
export const attributeDefinitions = Object.values(searchAttributes).map(
  ({ name, type }) => `${name}=${type === SearchAttributeType.DATETIME ? 'Datetime' : 'Keyword'}`,
)
