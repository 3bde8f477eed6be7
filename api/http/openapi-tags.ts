import { entities, entityNames } from '../../db/records/model/kinds/index.ts'

/** What the operations of a tag are about. Throws for one that nobody has described. */
export function describeTag(name: string): string {
  const kind = entityNames.find((entity) => entity === name.toLowerCase())
  const description = kind ? entities[kind].description : OTHERS[name]
  if (!description) throw new Error(`the tag ${name} is not described`)
  return description
}

const OTHERS: Record<string, string> = {
  Account: 'The key that is used, the scopes that there are, and the members of the organization.',
  Events: 'What outgoing webhooks can be told of.',
  Objects: 'The kinds of records.',
  'Custom fields': 'Definitions of fields of your own, by kind of record.',
  Imports: 'CSV files that become records.',
  Exports: 'Records as CSV files.',
  Workflows: 'Workflows, what they are made of, and their runs.',
  Session: 'Signing in and out of the settings.',
  Organization: 'Settings of the whole organization.',
  Keys: 'API keys.',
  'Incoming webhooks': 'Addresses at which other systems hand in records.',
  'Outgoing webhooks': 'Addresses at which other systems are told of events, and what was delivered to them.',
}
