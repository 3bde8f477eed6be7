import type { Approval } from '../../db/runs/approvals.ts'
import { escaped } from '../../workflows/shared/escape-html.ts'
import { htmlPage } from '../http/html-page.ts'
import { MAX_COMMENT } from './shape.ts'

/** The HTML page of an approval: the pending decision with a form, or the decision made. */
export function approvalPage(approval: Approval): string {
  const { title, message, workflow_name, expires_at } = approval
  const until = expires_at ? `, open until ${timeOf(expires_at)}` : ''
  return htmlPage(
    title,
    `<h1>${escaped(title)}</h1>
<p class="facts">Workflow ${escaped(workflow_name)}${approval.status === 'waiting' ? until : ''}</p>
${message === null ? '' : `<pre>${escaped(message)}</pre>`}
${approval.status === 'waiting' ? FORM : `<p>${escaped(outcomeOf(approval))}</p>`}`,
  )
}

const timeOf = (time: Date) => `${time.toISOString().slice(0, 16).replace('T', ' ')} UTC`

function outcomeOf({ status, answered_at, comment }: Approval): string {
  if (status === 'closed') return 'This request is closed: it has expired, or its run has ended.'
  const verb = status === 'approved' ? 'Approved' : 'Rejected'
  return `${verb}${answered_at ? ` on ${timeOf(answered_at)}` : ''}.${comment ? ` Comment: ${comment}` : ''}`
}

const FORM = `<form method="post">
<label for="comment">Comment (optional)</label><textarea id="comment" name="comment" maxlength="${MAX_COMMENT}"></textarea>
<button class="approve" name="decision" value="approved">Approve</button><button name="decision" value="rejected">Reject</button>
</form>`

export const messagePage = (title: string, message: string) =>
  htmlPage(title, `<h1>${escaped(title)}</h1><p>${escaped(message)}</p>`)
