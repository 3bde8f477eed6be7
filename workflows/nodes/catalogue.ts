/** What node types and validation know of the organization's data: it comes from outside, as an argument. */
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

/** The plural name of a kind that is given by its plural or its singular name. */
export const kindNamed = ({ entities }: Catalogue, name: string): string | undefined =>
  Object.keys(entities).find((plural) => plural === name || entities[plural]!.object === name)
