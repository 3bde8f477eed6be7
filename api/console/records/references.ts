import type { FieldSpec } from '../forms/field-spec.ts'
import type { List, View } from '../route.ts'
import { type RecordRow, titleOf } from './record.ts'

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i

/** The id that the text of a reference means, or why it means none. */
export type Resolved = { id: string } | { problem: string }

/** Finds the record of a kind by its id, or by its name if that is unambiguous. */
export async function resolveRecord({ read }: View, kind: string, typed: string): Promise<Resolved> {
  const text = typed.trim()
  if (UUID.test(text)) return { id: text }
  const query = new URLSearchParams({ q: text.slice(0, 500), limit: '20', count: 'none' })
  const { data, has_more } = await read<List<RecordRow>>(`/app/v1/objects/${kind}?${query}`)
  const exact = data.filter((record) => titleOf(record).toLowerCase() === text.toLowerCase())
  const [only, second] = exact.length > 0 ? exact : data
  if (only && !second && (exact.length > 0 || !has_more)) return { id: only.id }
  if (!only) return { problem: `no record of ${kind} matches “${text}”` }
  const names = (exact.length > 0 ? exact : data).slice(0, 5).map((one) => `${titleOf(one)} (${one.id})`)
  return { problem: `several match: ${names.join('; ')}. Give the id` }
}

/** Replaces the names in a body by ids. @returns the problems by field. */
export async function resolveReferences(
  view: View,
  fields: readonly FieldSpec[],
  body: Record<string, unknown>,
): Promise<Map<string, string[]>> {
  const problems = new Map<string, string[]>()
  await Promise.all(
    fields.map(async ({ name, type, references }) => {
      const typed = body[name]
      if (type !== 'reference' || !references || typeof typed !== 'string') return
      const resolved = await resolveRecord(view, references, typed)
      if ('id' in resolved) body[name] = resolved.id
      else problems.set(name, [resolved.problem])
    }),
  )
  return problems
}
