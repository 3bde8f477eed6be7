import { applyHints, isApplicable } from '../../../workflows/authoring/apply-hints.ts'
import type { Finding, Validation } from '../components/findings.tsx'
import { errorsOf } from '../forms/errors.ts'
import type { View } from '../route.ts'
import { insertNode } from './insert-node.ts'
import { type SnippetType, snippetOf } from './snippet.ts'

/** A spec in the editor, with what is known of it. */
export interface Edited {
  spec: string
  /**
   * The version that the spec was made from, if that is not the newest: a save must not replace one that was not seen.
   */
  version?: number
  validation?: Validation | undefined
  problems?: string[]
  /** What an activation needs. */
  missing?: Finding[]
  /** What somebody else saved meanwhile. */
  meanwhile?: Meanwhile
}

/** The newest version, as a difference from the one that the author began with. */
export interface Meanwhile {
  version: number
  /** Whether the spec in the editor has it already. */
  isMerged: boolean
  /** A unified diff; null: too many lines differ, or one has no YAML. */
  diff: string | null
}

/** A longer spec takes too long to read and write as YAML in a request. */
const LONGEST_FIX = 128 * 1024

/** How a button names the finding whose fix it applies. */
export const fixOf = ({ path, hint }: Finding): string => `fix ${path} ${hint ?? ''}`

/** What the buttons beside those that save do with the typed spec; undefined: it is to be saved. */
export async function editedBy(view: View): Promise<Edited | undefined> {
  const spec = view.form.get('spec')
  const wanted = view.form.get('do')
  if (wanted === 'check') return { spec, ...(await checked(view, spec)) }
  if (wanted === 'insert') return inserted(view, spec)
  if (wanted.startsWith('fix ')) return fixed(view, spec, wanted)
  return undefined
}

export async function checked({ change }: View, spec: string): Promise<{ validation: Validation }> {
  return { validation: await change<Validation>('POST', '/app/v1/workflows/validate', { spec }) }
}

async function inserted({ form, call }: View, spec: string): Promise<Edited> {
  const type = form.get('node_type').trim()
  if (type === '') return { spec, problems: ['Choose a node to insert.'] }
  const answer = await call('GET', `/app/v1/workflows/nodes/${encodeURIComponent(type)}`)
  if (answer.status >= 400) return { spec, problems: errorsOf(answer, []).others }
  return { spec: insertNode(spec, snippetOf(answer.body as unknown as SnippetType, spec)) }
}

async function fixed(view: View, spec: string, wanted: string): Promise<Edited> {
  const { validation } = await checked(view, spec)
  const finding = [...validation.errors, ...validation.warnings].find((one) => fixOf(one) === wanted)
  const text = finding && isApplicable(finding) && spec.length <= LONGEST_FIX ? applied(spec, finding) : spec
  if (text !== spec) return { spec: text, ...(await checked(view, text)) }
  return { spec, validation, problems: ['This could not be applied: change the line by hand.'] }
}

function applied(spec: string, finding: Finding): string {
  try {
    return applyHints(spec, [finding]).text
  } catch {
    // The hint does not fit what stands there by now.
    return spec
  }
}

/** Why a save was refused: the findings in the spec, or another reason. */
export function refusal(answer: { status: number; body: Record<string, unknown> }): Partial<Edited> {
  const { validation } = (answer.body.error ?? {}) as { validation?: Validation }
  return validation ? { validation } : { problems: errorsOf(answer, []).others }
}
