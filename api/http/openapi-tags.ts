import { kindNames, kinds } from '../../db/model/records/kinds/index.ts'

/** The description of a tag. Throws for a tag without one. */
export function describeTag(name: string): string {
  const kind = kindOfTag(name)
  const description = kind ? kinds[kind].description : DESCRIPTIONS[name]
  if (!description) throw new Error(`the tag ${name} has no description`)
  return description
}

/** The groups of the navigation, in its order. Throws for a tag in no group, or in a group with the tag's own name. */
export function groupTags(names: string[]): { name: string; tags: string[] }[] {
  const kinds = names.filter((name) => kindOfTag(name) !== undefined)
  const groups = [{ name: 'CRM', tags: [...kinds, ...RECORDS] }, ...GROUPS]
  const ungrouped = names.find((name) => !groups.some(({ tags }) => tags.includes(name)))
  if (ungrouped) throw new Error(`the tag ${ungrouped} is in no group`)
  // The navigation could not distinguish the tag from the group.
  const ambiguous = groups.find(({ name }) => names.includes(name))
  if (ambiguous) throw new Error(`${ambiguous.name} is a tag and a group`)
  return groups
}

const kindOfTag = (name: string) => kindNames.find((kind) => kind === name.toLowerCase().replace(' ', '_'))

const RECORDS = [
  'Records',
  'Files',
  'Custom fields',
  'Pipelines',
  'Exchange rates',
  'Views',
  'Lists',
  'Bulk jobs',
  'Imports',
  'Exports',
]
const GROUPS = [
  { name: 'Automation', tags: ['Workflows', 'Runs', 'Approvals', 'Node types', 'Templates', 'Events'] },
  { name: 'Insights', tags: ['Analytics'] },
  { name: 'Artificial intelligence', tags: ['Agents'] },
  { name: 'Knowledge', tags: ['Knowledge base'] },
  { name: 'Webhooks', tags: ['Incoming webhooks', 'Outgoing webhooks', 'Deliveries'] },
  {
    name: 'Administration',
    tags: [
      'Account',
      'Organization',
      'Members',
      'Keys',
      'Grants',
      'Secrets',
      'Mail suppressions',
      'Session',
      'Audit log',
    ],
  },
]

const DESCRIPTIONS: Record<string, string> = {
  Account: 'The current API key, the available scopes and the users of the organization.',
  Events: 'The events that outgoing webhooks can subscribe to.',
  Records: 'Operations that are the same for every kind of record: schemas, associations, history.',
  Files: 'Files of records: upload, list, download.',
  'Custom fields': 'Definitions of custom fields: types, options, uniqueness.',
  Pipelines: 'Deals move through the stages of a pipeline until they are won or lost.',
  'Exchange rates': 'What amounts of other currencies are worth in that of the organization.',
  Views: 'Saved filters, sorts and columns of lists: own ones, and shared ones.',
  Lists: 'Sets of records of one kind, chosen or by a filter.',
  'Bulk jobs': 'Updates, deletions and reassignments of many records by filter, and their undos.',
  Imports: 'Imports of CSV files, run in the background.',
  Exports: 'Exports to CSV files, run in the background.',
  Workflows:
    'Definitions of workflows: validate, create, activate, run. [The findings of a validation](/docs/findings), each with an example.',
  Runs: 'Runs of workflows, with the state of each node.',
  Approvals: 'The links at which people decide what runs ask.',
  'Node types': 'The catalogue of node types.',
  Templates: 'Ready-made workflows, to import and adapt.',
  Agents:
    'The Model Context Protocol, with which AI agents use the same operations. [How to connect one](/docs/agents).',
  Analytics: 'Metrics of records, workflows and webhooks: ready dashboards, and a query.',
  'Knowledge base':
    'Collections of documents, divided into passages, with ranked full-text search for people and for the prompts of language models.',
  Session: 'Sign-in to the settings, sessions and password resets.',
  Organization: 'Settings of the organization.',
  Members: 'The users of the organization, their roles and invitations.',
  'Audit log': 'Who changed the access to the organization or its configuration.',
  Keys: 'API keys: create, restrict, rotate, revoke.',
  Grants: 'Assistants that users have connected by OAuth: list, end. [How](/docs/agents).',
  'Mail suppressions': 'Addresses that get no mails of workflows: list, add, remove.',
  Secrets: 'Credentials that workflows use in calls of other services.',
  'Incoming webhooks': 'Endpoints that receive payloads from other systems and create or update records.',
  'Outgoing webhooks':
    'Subscriptions that deliver events to other systems. [How a receiver verifies them](/docs/webhooks), in Node, Python, Go and PHP.',
  Deliveries: 'Deliveries of events to outgoing webhooks, with their attempts.',
}
