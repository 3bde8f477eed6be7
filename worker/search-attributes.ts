import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common'

const keyword = (name: string) => defineSearchAttributeKey(name, SearchAttributeType.KEYWORD)

/** What runs, deliveries and files are found by in the Temporal UI. No personal data: everybody there sees it. */
export const searchAttributes = {
  organization: keyword('AgxOrganization'),
  workflow: keyword('AgxWorkflow'),
  record: keyword('AgxRecord'),
  endpoint: keyword('AgxEndpoint'),
  trigger: keyword('AgxTrigger'),
  /** Of runs that wait for a person. */
  state: keyword('AgxState'),
}
