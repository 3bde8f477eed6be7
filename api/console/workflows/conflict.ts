import type { Workflow } from '../pages/workflow-parts.tsx'
import type { View } from '../route.ts'
import type { Edited } from './edit.ts'
import { mergeTexts } from './merge-texts.ts'

/**
 * What the author typed, with what somebody else saved since the author opened the workflow: merged where both changed
 * different lines. A save then replaces the version that was seen here.
 */
export async function afterConflict(
  { form, call }: View,
  { workflow_id, version, spec: theirs }: Workflow,
): Promise<Edited> {
  const mine = form.get('spec')
  const versions = `/app/v1/workflows/${workflow_id}/versions`
  const began = encodeURIComponent(form.get('version'))
  const [base, change] = await Promise.all([
    call('GET', `${versions}/${began}`),
    call('GET', `${versions}/${version}/diff?against=${began}`),
  ])
  const begun = base.status < 400 ? (base.body.spec as string | null) : null
  const merged = begun === null || theirs === null ? undefined : mergeTexts(begun, mine, theirs)
  const diff = change.status < 400 ? (change.body.text as string | null) : null
  return { spec: merged ?? mine, meanwhile: { version, isMerged: merged !== undefined, diff } }
}
