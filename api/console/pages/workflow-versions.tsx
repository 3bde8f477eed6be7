import { ConfirmButton } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Diff } from '../components/diff.tsx'
import { Lines } from '../components/findings.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Status } from '../components/status.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import { mayAuthor } from './workflow-list.tsx'
import { HERE, Tabs, type Workflow, workflowOf } from './workflow-parts.tsx'

interface Version {
  version: number
  active: boolean
  summary: string | null
  restored_from: number | null
  created_by: { type: string; name?: string | null } | null
  created_at: string
}

/** The versions of a workflow, and one of them with its changes. */
export const workflowVersionPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/workflows/{workflow_id}/versions',
    async handler(view) {
      const cursor = view.query.get('cursor')
      const [workflow, versions] = await Promise.all([
        workflowOf(view),
        view.read<List<Version>>(
          `/app/v1/workflows/${view.params.workflow_id}/versions?limit=50${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`,
        ),
      ])
      return versionsPage(workflow, versions)
    },
  },
  {
    method: 'GET',
    path: '/workflows/{workflow_id}/versions/{version}',
    async handler(view) {
      const path = `/app/v1/workflows/${view.params.workflow_id}/versions/${view.params.version}`
      const [workflow, version, diff] = await Promise.all([
        workflowOf(view),
        view.read<Version & { spec: string | null }>(path),
        view.read<{ text: string | null; against: number | null }>(`${path}/diff`),
      ])
      return versionPage(view, workflow, version, diff)
    },
  },
  {
    method: 'POST',
    path: '/workflows/{workflow_id}/versions/{version}/restore',
    async handler({ change, params }) {
      const { workflow_id, version } = params
      await change('POST', `/app/v1/workflows/${workflow_id}/versions/${version}/restore`)
      return { redirect: `/workflows/${workflow_id}?done=saved` }
    },
  },
]

const versionsPage = (workflow: Workflow, versions: List<Version>): Page => ({
  title: `Versions of ${workflow.name}`,
  content: (
    <>
      <PageHeader title={<span dir="auto">{workflow.name}</span>} crumbs={[HERE]} />
      <Tabs workflow={workflow} current="Versions" />
      <Table
        label="Versions"
        rows={versions.data}
        keyOf={({ version }) => String(version)}
        columns={[
          {
            title: 'Version',
            cell: ({ version }) => (
              <a href={`/workflows/${workflow.workflow_id}/versions/${version}`}>Version {version}</a>
            ),
          },
          { title: 'Status', cell: ({ active }) => active && <Status of="active" /> },
          {
            title: 'What changed',
            cell: ({ summary, restored_from }) => (restored_from ? `restores ${restored_from}` : summary),
          },
          { title: 'Saved by', cell: ({ created_by }) => created_by?.name ?? created_by?.type },
          { title: 'Saved', cell: ({ created_at }) => <Time at={created_at} /> },
        ]}
      />
      <Paging list={versions} />
    </>
  ),
})

function versionPage(
  view: View,
  workflow: Workflow,
  version: Version & { spec: string | null },
  diff: { text: string | null; against: number | null },
): Page {
  const here = `/workflows/${workflow.workflow_id}`
  return {
    title: `Version ${version.version} of ${workflow.name}`,
    content: (
      <>
        <PageHeader
          title={`Version ${version.version}`}
          crumbs={[
            HERE,
            { href: here, label: workflow.name },
            { href: `${here}/versions`, label: 'Versions' },
          ]}
        >
          {mayAuthor(view) && version.version !== workflow.version && (
            <ConfirmButton
              action={`${here}/versions/${version.version}/restore`}
              question={`Saves the content of version ${version.version} as version ${workflow.version + 1}.`}
              confirm="Restore it"
            >
              Restore
            </ConfirmButton>
          )}
        </PageHeader>
        {diff.against !== null && diff.text && (
          <Card title={`Changes from version ${diff.against}`}>
            <Diff text={diff.text} />
          </Card>
        )}
        <Lines text={version.spec ?? 'It is larger than a spec may be.'} />
      </>
    ),
  }
}
