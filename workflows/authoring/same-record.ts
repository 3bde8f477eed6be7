import { type Token, TypeGuards } from 'liquidjs'
import { parseTemplate } from '../language/expressions/template.ts'
import { type Expression, treeOf } from '../language/expressions/tree.ts'

/**
 * Whether a condition holds only if the event is about the record of the run's trigger: it is
 * `event.record.id == trigger.record.id`, or this and more. Bulk changes of records with 20,000 open runs then compare
 * each event with the runs of its record instead of with all.
 */
export function isSameRecord(when: string): boolean {
  const [only, ...others] = parseTemplate(when).parts
  if (only === undefined || typeof only === 'string' || others.length > 0) return false
  return only.filters.length === 0 && requires(treeOf(only.initial))
}

function requires(tree: Expression): boolean {
  if (tree.kind === 'and') return requires(tree.left) || requires(tree.right)
  if (tree.kind === 'value') {
    const { token } = tree
    return (
      TypeGuards.isFilteredValueToken(token) && token.filters.length === 0 && requires(treeOf(token.initial))
    )
  }
  if (tree.kind !== 'comparison' || tree.operator !== '==') return false
  return [pathOf(tree.left), pathOf(tree.right)].sort().join() === 'event.record.id,trigger.record.id'
}

function pathOf(tree: Expression): string {
  const token: Token | undefined = tree.kind === 'value' ? tree.token : undefined
  if (!token || !TypeGuards.isPropertyAccessToken(token) || token.variable) return ''
  const known = token.props.map((segment) => (TypeGuards.isWordToken(segment) ? segment.content : '?'))
  return known.join('.')
}
