import type { Sender } from './types.ts'

const of = (name: string) => [`object_attributes.${name}`]

/** Events of a project: an issue or a merge request is a task. `user` is who acted, `assignees` are ours. */
export const gitlab: Sender = {
  name: 'GitLab',
  documentation: 'https://docs.gitlab.com/user/project/integrations/webhooks/',
  verification: { type: 'secret' },
  deliveryHeader: 'x-gitlab-event-uuid',
  matches: ({ payload: { object_kind, project, project_id } }) =>
    typeof object_kind === 'string' && (project ?? project_id) !== undefined,
  isNotice: ({ payload }) => !['issue', 'work_item', 'merge_request'].includes(String(payload.object_kind)),
  fields: {
    tasks: {
      title: of('title'),
      body: of('description'),
      due_at: of('due_date'),
      external_id: of('id'),
    },
  },
}
