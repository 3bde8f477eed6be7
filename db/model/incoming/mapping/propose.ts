import type { MappingRule, TargetKind, Transform } from '../types.ts'
import { matchesOf } from './automatic.ts'
import { type Match, optionNamed } from './guess.ts'
import { leaves } from './leaves.ts'
import { mapManually } from './manual.ts'
import { textAt, valueAt } from './path.ts'
import type { SenderRequest } from './senders/types.ts'
import { fieldOf } from './targets.ts'
import { unmappedOf } from './unmapped.ts'

/** A rule that was proposed from a sample. */
export interface ProposedRule {
  rule: MappingRule
  /** The value of the sample at the rule's path. */
  value: unknown
  reason: string
}

export interface Proposal {
  sender: string | null
  /** The sample is a set-up request or a notification of its sender, which has no data. */
  is_ping: boolean
  proposed: ProposedRule[]
  unmapped: string[]
  warnings: string[]
}

/** The rules by which a payload like the sample is mapped as automatic mapping does it, each with its reason. Pure. `chosen` as in `senderOf`. */
export function proposeMapping(
  payload: unknown,
  kind: TargetKind,
  headers: SenderRequest['headers'] = {},
  chosen?: string | null,
): Proposal {
  const all = leaves(payload)
  const { sender = null, skip, best, tags, custom, warnings } = matchesOf(payload, kind, headers, all, chosen)
  const hasName = best.has('first_name') && best.has('last_name')
  const matches = [...best.values(), ...tags, ...custom].filter(
    ({ field }) => field !== 'full_name' || (kind === 'contacts' && !hasName),
  )
  const rules = matches.flatMap((match) => targetsOf(match, best))
  // One rule for each target and path: a list of tags has a match for each item.
  const byTarget = new Map(rules.map(({ to, from, match }) => [`${to} ${from}`, { to, from, match }]))
  const proposed = [...byTarget.values()].flatMap(({ to, from, match }) => {
    const value = valueAt(payload, from)
    const reason = reasonOf(match, sender)
    return value === undefined ? [] : [{ rule: ruleOf(to, from, match, payload, kind), value, reason }]
  })
  const mapping = proposed.map(({ rule }) => rule)
  const { unmapped = [] } = skip
    ? {}
    : unmappedOf(all, { mode: 'manual', rules: mapping }, mapManually(payload, mapping, kind))
  return { sender, is_ping: skip !== undefined, proposed, unmapped, warnings }
}

interface Target {
  to: string
  from: string
  match: Match
}

function targetsOf(match: Match, best: Map<string, Match>): Target[] {
  const { field, leaf } = match
  if (field === 'full_name')
    return ['first_name', 'last_name']
      .filter((part) => !best.has(part))
      .map((to) => ({ to, from: leaf.path, match }))
  return [{ to: field, from: field === 'tags' ? leaf.path.replace(/\[\d+\]$/, '') : leaf.path, match }]
}

function ruleOf(to: string, from: string, match: Match, payload: unknown, kind: TargetKind): MappingRule {
  if (match.because === 'opt-out') {
    const text = textAt(payload, from)
    return { from, to, transforms: [IS_TRUE], when: { path: from, is: 'equal', to: text } }
  }
  return { from, to, transforms: transformsOf(to, from, match, payload, kind) }
}

const IS_TRUE: Transform = { type: 'replace', pattern: '(?s).+', by: 'true' }

function transformsOf(
  to: string,
  from: string,
  { field }: Match,
  payload: unknown,
  kind: TargetKind,
): Transform[] {
  if (field === 'full_name') return [{ type: 'split_name', part: to as 'first_name' | 'last_name' }]
  const options = fieldOf(to, kind)?.values
  const text = textAt(payload, from)
  if (options && !options.includes(text) && optionNamed(text, options))
    return [{ type: 'lowercase' }, { type: 'replace', pattern: '[\\s-]+', by: '_' }]
  return []
}

function reasonOf({ field, because, leaf }: Match, sender: string | null): string {
  const name = `"${leaf.key}"`
  switch (because) {
    case 'sender':
      return `${sender} sends the ${field} here`
    case 'custom field':
      return `${name} names a custom field`
    case 'opt-out':
      return 'this value says that the person must not be contacted'
    case 'own name':
      return `${name} is the name of the field`
    case 'synonym':
      return leaf.isAnswer
        ? `the answer to ${name}, which asks for the ${field}`
        : `${name} is a common name of ${field}`
  }
}
