import type { Origin } from '../language/shapes.ts'
import type { ValueType } from '../language/value-types.ts'

/** What is wrong in an expression, in terms of its types. `origin`: the type is only likely. */
export type Mistake = { origin?: Origin | undefined } & MistakeKind

/** `path`: the value at `path` has no such member. `names`: those it has. */
type MistakeKind =
  | {
      kind: 'path'
      path: readonly Segment[]
      at: number
      what: string
      names: readonly string[]
      type: ValueType
    }
  /** A filter names a field that the items of its list do not have. */
  | {
      kind: 'field'
      filter: string
      field: string
      key: string
      names: readonly string[]
      /** The path to a member of that name in another member: `output.x`. */
      within?: string | undefined
    }
  /** A value is compared with one that it can never have. */
  | { kind: 'comparison'; value: string; allowed: readonly string[] }
  /** The organization has no such custom field. */
  | { kind: 'custom'; name: string; of: string; names: readonly string[] }
  /** A filter gets too few or too many arguments, or a wrong one. */
  | { kind: 'arguments'; problem: string; hint?: string | undefined }
  /** The member at `at` of a path is named by an `output_schema` that does not require it. */
  | { kind: 'absent'; path: readonly Segment[]; at: number }
  /** The custom field is sensitive: its mask is read. */
  | { kind: 'mask'; name: string; of: string }
  /** A filter gets what it cannot be meant for, such as a list where it computes. */
  | { kind: 'operand'; filter: string; what: string; wants: Wanted }
  /** Two values can never be equal, or have no order. */
  | { kind: 'incomparable'; problem: string; hint?: string | undefined }
  /** A value that is always true is tested. */
  | { kind: 'always'; what: string; written: string }
  /** What is computed with a value that may be null is null. `of`: the path to it; it may be an argument. */
  | { kind: 'null'; filter: string; of: string; isArgument: boolean }

/** What a filter takes. */
export type Wanted = 'a number' | 'a text' | 'a list' | 'a time'

/** A segment of a path; undefined if it is computed. */
export type Segment = string | number | undefined
