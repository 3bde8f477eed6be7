import type { InputSpec } from '../../../workflows/language/definition.ts'
import type { View } from '../route.ts'
import type { WorkflowSummary } from './workflow-list.tsx'

/** What the pages of a workflow have in common. */

export interface Workflow extends WorkflowSummary {
  spec: string | null
  definition: { inputs?: Record<string, InputSpec> }
  trigger_problem: { message: string; at: string; count: number } | null
}

/** The crumb of the list. */
export const HERE = { href: '/workflows', label: 'Workflows' }

export const workflowOf = ({ read, params }: View) =>
  read<Workflow>(`/app/v1/workflows/${params.workflow_id}`)

export function Tabs({ workflow, current }: { workflow: Workflow; current: string }) {
  const here = `/workflows/${workflow.workflow_id}`
  const tabs: [string, string][] = [
    ['Workflow', here],
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
