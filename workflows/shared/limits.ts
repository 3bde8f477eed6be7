/**
 * What a tenant may have computed at the most, in one place. One small request must not hold up a process for others:
 * what can be refused when it is saved is refused then, what remains takes some 20 ms of one thread, and what may take
 * longer runs in the pool of threads (compute/pool.ts). Figures were measured on one core of a server of 2024.
 */

/** Of a workflow's spec or raw definition. */
export const SPEC = {
  /** UTF-8, of a YAML spec. Parsing takes about 0.6 ms for each KiB. */
  bytes: 262_144,
  /** Of a raw definition as JSON: it writes out each edge. */
  definitionBytes: 524_288,
  /** Scalars, lists and mappings together. Each costs a check by the schema. */
  values: 30_000,
  /** Of nested lists and mappings. `yaml` aborts the whole process at about 2,000, and that cannot be caught. */
  depth: 100,
  /** A run of so many light nodes takes 40 segments, and 80 events of its history. */
  nodes: 2_000,
  /** The analysis of a graph takes time in proportion to nodes × edges. */
  edges: 5_000,
  /** Findings of one kind that are reported: more help nobody. */
  findings: 200,
  /** Typed placeholders of a node × values of its config: each is checked with the whole config. */
  typeChecks: 200_000,
} as const

/** Of the placeholders in a text, and of the filters in them. */
export const EXPRESSION = {
  /** Characters of a text with placeholders. */
  template: 65_536,
  /** LiquidJS parses nested brackets by recursion. */
  brackets: 50,
  /** Filters behind one value. */
  filters: 50,
  /** Of one node. Each takes about 10 µs, parsing included, whenever the node runs. */
  placeholders: 2_000,
  /**
   * Characters of texts and items of lists that the filters of one value (a node's config) read and write together.
   * The slowest filters take about 0.1 µs for one, so that a config is rendered in some 100 ms in the worst case and a
   * few in all others.
   */
  work: 1_000_000,
  /** Characters of an argument: separators, names of fields, replacements. */
  argument: 65_536,
  /** Characters of the format of a date. Each directive costs microseconds, where an argument's character costs nothing. */
  dateFormat: 200,
  /** Characters to which a directive of a date's format may pad. */
  datePadding: 100,
} as const

/** Of the secrets of an organization, which nodes that call other services read as `secrets.<name>`. */
export const SECRETS = {
  count: 100,
  /**
   * Characters of a value, without surrounding white space. A shorter one cannot be masked wherever it occurs: it would
   * mask parts of common words.
   */
  least: 8,
  /** Room for a private key with its certificates. */
  characters: 8_192,
  /**
   * Values of so many characters are masked in results of all nodes that call other services, not only of their
   * readers.
   */
  distinctive: 16,
} as const

/** Of the settings of an organization, which nodes read as `env.<name>`. */
export const ENV = {
  count: 100,
  /** Of one value. */
  characters: 4_096,
  /** Of all as JSON: each segment of a run reads them. */
  bytes: 32_768,
} as const

/** Of the `when` of an event trigger, which is rendered for each of its events: some 20 ms of CPU time at most. */
export const TRIGGER_WHEN = { work: 200_000 } as const

/** Of runs that start each other, also through events: a run that would be deeper in its chain is not started. */
export const CHAIN_DEPTH = 10

/** Of the signals to one run. */
export const SIGNAL = {
  /** Characters of its name. */
  name: 100,
  /** Of the payload as JSON. */
  bytes: 65_536,
  /** That no node has taken yet. */
  pending: 100,
}

/** Of the sample outputs of a workflow's nodes. */
export const SAMPLE = {
  /** Of one output as JSON. */
  bytes: 65_536,
  /** Of one workflow. A test reads them all. */
  count: 50,
} as const

/** Of nodes that work on a list in memory. */
export const LIST = {
  items: 10_000,
  /** Fields to sort or group by, and values of groups. */
  fields: 10,
  conditions: 20,
  /**
   * Comparisons of a filter, some 0.5 µs each: a value counts as one, and as one more for each 100 characters or
   * member that it has.
   */
  comparisons: 1_000_000,
} as const

/**
 * Levels of nested lists and objects of a node's value. JSON.stringify and PostgreSQL overflow their stacks at some
 * thousands.
 */
export const VALUE_DEPTH = 200

/** Of nodes that read a text: more than any document that a value of 1 MiB can hold as a list. */
export const TEXT = {
  /** Characters of a CSV or JSON text, and of a text to split or to hash. */
  characters: 1_048_576,
  /** Rows of a CSV text, parts of a text. */
  parts: 10_000,
  /** Characters of a text between two parts. */
  separator: 1_000,
} as const

/** Of the values that workflows keep between runs. */
export const KEY_VALUES = {
  /** Of an organization. Counting them takes some 10 ms, when a new one is stored. */
  count: 100_000,
  /** Characters of a key. */
  key: 200,
  /** Of a value as JSON. The run that writes it keeps a copy. */
  bytes: 32_768,
  /** Of one list. */
  page: 100,
  /** The largest number that can be incremented: JSON numbers are exact up to some 9e15. */
  number: 1e15,
} as const

/** Of the knowledge base of an organization. */
export const KNOWLEDGE = {
  collections: 200,
  documents: 10_000,
  /** Of all documents together. A search ranks the passages that match: 1,000 take some 10 ms. */
  passages: 100_000,
  /** Of which the language can be changed: each is indexed again, some 5,000 in a second. */
  passagesToIndex: 10_000,
  /** UTF-8, of a document's text or markup. The JSON of a request has at most 1 MiB. */
  bytes: 1_000_000,
  title: 500,
  tags: 50,
  /** Characters of a tag. */
  tag: 64,
  /** Characters of a passage: some 300 words, which a model can quote and a person reads at a glance. */
  passage: 1_600,
  /**
   * A section of fewer characters shares a passage with the next one, so that a list of headings is not one of
   * passages.
   */
  section: 400,
  /** Characters of the headings above a passage. */
  heading: 300,
  /** Characters of a query. */
  query: 2_000,
  /** Of a query, its longest ones, of which a passage must have some: each takes time for each passage that has it. */
  words: 32,
  /** Passages that a node finds. */
  page: 20,
} as const

/** Of loops. */
export const LOOP = {
  items: 10_000,
  /** Items in progress at the same time. */
  concurrency: 50,
  /**
   * Items in progress of all loops of a run together: each segment loads their nodes. A loop in a loop always gets one.
   */
  open: 200,
  /** Of one workflow: the analysis of bodies takes time in proportion to loops × edges. */
  perWorkflow: 50,
  /** Loops in loops. */
  depth: 5,
} as const

/** Of regular expressions in mapping rules (RE2: time is text × program). */
export const PATTERN = {
  /** Characters as written. */
  characters: 500,
  /** Instructions of the compiled program; `a{1,1000}` has 2,000. */
  program: 1_000,
  /** Instructions of all patterns of one webhook together. */
  programs: 5_000,
  /** UTF-16 units of the text that a pattern reads: more than any field takes. */
  text: 16_384,
} as const

/** Of the body of an incoming webhook. */
export const DOCUMENT = {
  depth: 32,
  /** Scalars, lists and objects together. */
  values: 30_000,
  /** `<` and `=` in XML, before parsing: 160,000 take over a second. No document of so many values has as many. */
  xmlMarks: 40_000,
  /** Fields of a form. */
  formFields: 1_000,
  /** Characters of the name of a member: longer ones are no names of fields. */
  name: 1_000,
} as const

/** Of a CSV file. */
export const CSV = {
  /**
   * Bytes of a row with its delimiters; a field of text takes 65,536 characters. What is longer has mostly lost a
   * quote.
   */
  rowBytes: 1024 * 1024,
  columns: 1_000,
  /** Cells of a row, empty ones too: far more than columns, for what spreadsheets leave behind. Takes some 10 ms. */
  cells: 131_072,
  /** Bytes that are parsed before other work has its turn. */
  turn: 4_096,
} as const

/** Of the tools that a node gives a language model. */
export const AI_TOOLS = {
  /** Answers of the model with calls; it must answer without them then. */
  rounds: 5,
  /** Calls in one of its answers; the others are refused. */
  callsPerRound: 8,
  /** Records of one call. */
  records: 20,
  argumentCharacters: 5_000,
  resultCharacters: 20_000,
} as const

/** Of the JavaScript of a node, which runs in a thread. */
export const CODE = {
  characters: 32_768,
  /** Milliseconds on the clock: the machine may be busy, and threads have a low priority. */
  ms: 3_000,
  /** After these the thread is ended: some functions of QuickJS cannot be interrupted. */
  killMs: 6_000,
  /** That it waits for its turn, with its own limit: one thread runs the code of an organization, in order. */
  waitMs: 120_000,
  memoryBytes: 64 * 1024 * 1024,
  /** Of the result as JSON; an output may have 1 MiB. */
  resultCharacters: 1_000_000,
  logLines: 100,
  logCharacters: 500,
} as const

/** Of questions about the organization's data. */
export const ANALYTICS = {
  dimensions: 2,
  /** Values of one filter. */
  values: 100,
  groups: 100,
  defaultGroups: 10,
  buckets: 1_000,
  rows: 10_000,
  ms: 10_000,
} as const
