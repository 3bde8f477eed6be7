/** The organization's data model, for node types and validation; passed as an argument. */
export interface Catalogue {
  /** The kinds of records, by plural name. */
  entities: Readonly<Record<string, RecordKind>>
}

export interface RecordKind {
  /** Its singular name. */
  object: string
  /** Names of the fields that a record has. */
  readable: readonly string[]
  /** Names of the fields that a client can set. */
  writable: readonly string[]
  /** The fields that point to a record, with the plural name of its kind. */
  references: Readonly<Record<string, string>>
}

/** The plural name of a kind, by its plural or singular name. */
export const kindNamed = ({ entities }: Catalogue, name: string): string | undefined =>
  Object.keys(entities).find((plural) => plural === name || entities[plural]!.object === name)
