import { ROLE_SCOPES } from '../../../db/model/access/roles.ts'
import type { Definition } from '../../../workflows/language/definition.ts'
import { allows } from '../../http/scopes.ts'
import { Status } from '../components/status.tsx'
import { usePage } from '../context.ts'
import type { View } from '../route.ts'
import type { WorkflowSummary } from './workflow-list.tsx'

/** What the pages of a workflow have in common. */

export interface Workflow extends WorkflowSummary {
  spec: string | null
  definition: Pick<Definition, 'nodes' | 'edges'> & Partial<Pick<Definition, 'inputs'>>
  trigger_problem: { message: string; at: string; count: number } | null
}

/** The crumb of the list. */
export const HERE = { href: '/workflows', label: 'Workflows' }

/** What a node changes, in words. */
export const EFFECTS: Record<string, string> = {
  pure: 'none',
  read: 'reads your data',
  write: 'changes your data',
  external: 'calls another service',
}

export const workflowOf = ({ read, params }: View) =>
  read<Workflow>(`/app/v1/workflows/${params.workflow_id}`)

/** The name of a workflow and its status, as the title of its pages. */
export const WorkflowTitle = ({ workflow: { name, status } }: { workflow: Workflow }) => (
  <span dir="auto">
    {name} <Status of={status} />
  </span>
)

export function Tabs({ workflow, current }: { workflow: Workflow; current: string }) {
  const here = `/workflows/${workflow.workflow_id}`
  const { session } = usePage().view
  const tabs: [string, string][] = [
    ['Workflow', here],
    ...(allows(ROLE_SCOPES[session!.role], 'workflows:run')
      ? [['Test', `${here}/test`] as [string, string]]
      : []),
    ['Versions', `${here}/versions`],
    ['Runs', `/runs?workflow_id=${workflow.workflow_id}`],
  ]
  return (
    <nav class="tabs" aria-label="Parts of the workflow">
      {tabs.map(([label, href]) => (
        <a href={href} key={href} aria-current={label === current ? 'page' : undefined}>
          {label}
        </a>
      ))}
    </nav>
  )
}
