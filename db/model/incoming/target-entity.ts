import { capitalized, RECORD_KINDS } from '../../../workflows/shared/record-kinds.ts'
import { TARGET_KINDS, type TargetKind } from './types.ts'

/**
 * `target_entity` is the kind of a webhook's records in its table and on the wire: `Contact` for `contacts`. Everything
 * between these two edges has `kind`.
 */
export type TargetEntity = Capitalize<(typeof RECORD_KINDS)[TargetKind]>

export const targetEntityOf = (kind: TargetKind): TargetEntity => capitalized(RECORD_KINDS[kind])

export const TARGET_ENTITIES = TARGET_KINDS.map(targetEntityOf)

export const kindOf = (entity: TargetEntity): TargetKind => TARGET_KINDS[TARGET_ENTITIES.indexOf(entity)]!

type Renamed<T, From, To extends string, Value> = {
  [K in keyof T as K extends From ? To : K]: K extends From ? Value | Extract<T[K], undefined> : T[K]
}

/** A row or a body with `kind` in the place of `target_entity`. */
export const withKind = <T extends { target_entity?: TargetEntity | undefined }>(values: T) =>
  renamed(values, 'target_entity', 'kind', kindOf) as Renamed<T, 'target_entity', 'kind', TargetKind>

/** The inverse. */
export const withTargetEntity = <T extends { kind?: TargetKind | undefined }>(values: T) =>
  renamed(values, 'kind', 'target_entity', targetEntityOf) as Renamed<
    T,
    'kind',
    'target_entity',
    TargetEntity
  >

/** Keeps the order: the audit log lists the fields of a change in it. */
const renamed = <Given, Value>(
  values: object,
  from: string,
  to: string,
  convert: (given: Given) => Value,
): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) =>
      name === from ? [to, value && convert(value)] : [name, value],
    ),
  )
