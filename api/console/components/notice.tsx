import { usePage } from '../context.ts'
import { Icon } from './icon.tsx'

/** What a form did, by the parameter `done` of the page that it leads to. Other texts cannot be put there. */
const TEXTS: Record<string, string> = {
  created: 'Created.',
  saved: 'Saved.',
  deleted: 'Deleted. It can be restored within 30 days.',
  removed: 'Deleted for good.',
  revoked: 'The key is revoked: its clients are refused from now on.',
  disconnected: 'The assistant is disconnected: it is refused from now on.',
  activated: 'Activated.',
  deactivated: 'Deactivated.',
  sent: 'The test event is on its way: see the deliveries.',
  resent: 'Sent again: see the newest delivery.',
  changed: 'Done. The page shows the new state.',
  started: 'The run has started.',
  moved: 'Moved.',
  exporting: 'The export has begun: its file appears here.',
  undone: 'The undo has begun. It goes on by itself.',
  restored: 'Restored.',
  unlinked: 'The link is removed.',
  linked: 'Linked.',
  ended: 'That session has ended.',
  invited: 'The invitation is on its way.',
  merged: 'Merged. The duplicate is gone; what belonged to it is here.',
  mailed: 'The link is mailed to the member.',
  member_removed: 'The member is removed. What the member held is handed over in the background.',
  reset_requested:
    'Done. If the service sends mails, the link is on its way; else an admin sees the request.',
  withdrawn: 'The invitation is withdrawn: its link no longer works.',
  switched: 'You work in another organization now.',
}

export function Notice() {
  const text = TEXTS[usePage().view.query.get('done') ?? '']
  if (!text) return null
  return (
    <p class="notice green" role="status">
      <Icon name="circle-check" /> {text}
    </p>
  )
}
