import {
  capitalized,
  type KindObject,
  RECORD_KINDS,
  TARGET_KINDS,
} from '../../../workflows/shared/record-kinds.ts'
import type { TargetKind, WebhookKind } from './types.ts'

/**
 * `target_entity` is the kind of a webhook's records in its table and on the wire: `Contact` for `contacts`. Everything
 * between these two edges has `kind`. A webhook without records has `none` in both.
 */
export type TargetEntity = Capitalize<(typeof RECORD_KINDS)[TargetKind]> | 'none'

export const targetEntityOf = (kind: WebhookKind): TargetEntity =>
  kind === 'none' ? kind : capitalized(RECORD_KINDS[kind])

const WEBHOOK_KINDS: readonly WebhookKind[] = [...TARGET_KINDS, 'none']

export const TARGET_ENTITIES = WEBHOOK_KINDS.map(targetEntityOf)

export const kindOf = (entity: TargetEntity): WebhookKind => WEBHOOK_KINDS[TARGET_ENTITIES.indexOf(entity)]!

/** The entity of answers and log entries; null without records. */
export const entityOf = (kind: WebhookKind): KindObject | null =>
  kind === 'none' ? null : RECORD_KINDS[kind]

type Renamed<T, From, To extends string, Value> = {
  [K in keyof T as K extends From ? To : K]: K extends From ? Value | Extract<T[K], undefined> : T[K]
}

/** A row or a body with `kind` in the place of `target_entity`. */
export const withKind = <T extends { target_entity?: TargetEntity | undefined }>(values: T) =>
  renamed(values, 'target_entity', 'kind', kindOf) as Renamed<T, 'target_entity', 'kind', WebhookKind>

/** The inverse. */
export const withTargetEntity = <T extends { kind?: WebhookKind | undefined }>(values: T) =>
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
