/**
 * The limits of what a tenant can make the service compute. No request may block a process for others: input above a
 * limit is refused when it is saved, the rest takes at most some 20 ms of one thread, and work that may take longer
 * runs in the thread pool (compute/pool.ts). The figures were measured on one core of a server of 2024.
 */

/** A workflow's spec or raw definition. */
export const SPEC = {
  /** Bytes of a YAML spec in UTF-8. Parsing takes about 0.6 ms for each KiB. */
  bytes: 262_144,
  /** Bytes of a raw definition as JSON, which lists each edge. */
  definitionBytes: 524_288,
  /** Scalars, lists and mappings together. Each is checked by the schema. */
  values: 30_000,
  /** Levels of nested lists and mappings. At about 2,000, `yaml` aborts the process; that cannot be caught. */
  depth: 100,
  /** A run of 2,000 light nodes takes 40 segments, and 80 events of its history. */
  nodes: 2_000,
  /** Nodes of one `undo`, `on_cancel` or `finally`, which run one after the other. */
  cleanupNodes: 20,
  /** The analysis of a graph takes time in proportion to nodes × edges. */
  edges: 5_000,
  /** Reported findings: errors and warnings each. */
  findings: 200,
  /** Typed placeholders of a node × values of its config: the whole config is checked for each placeholder. */
  typeChecks: 200_000,
} as const

/** Placeholders in a text, and their filters. */
export const EXPRESSION = {
  /** Characters of a text with placeholders. */
  template: 65_536,
  /** Levels of nested brackets, which LiquidJS parses by recursion. */
  brackets: 50,
  /** Filters after one value. */
  filters: 50,
  /** Values and operators of one expression. */
  tokens: 200,
  /** Placeholders of one node. Each takes about 10 µs, parsing included, whenever the node runs. */
  placeholders: 2_000,
  /**
   * Characters of texts and items of lists that the filters of one value (a node's config) read and write together.
   * The slowest filters take about 0.1 µs for each: a config is rendered in 100 ms at worst, usually in a few ms.
   */
  work: 1_000_000,
  /** Characters of a filter's argument: a separator, the name of a field, a replacement. */
  argument: 65_536,
  /** Characters of a date format. Each directive takes microseconds. */
  dateFormat: 200,
  /** Characters to which a directive of a date format can pad. */
  datePadding: 100,
} as const

/** The secrets of an organization, which nodes that call other services read as `secrets.<name>`. */
export const SECRETS = {
  count: 100,
  /**
   * The least characters of a value, without surrounding white space. A shorter value cannot be masked: it occurs in
   * common words.
   */
  least: 8,
  /** Room for a private key with its certificates. */
  characters: 8_192,
  /** Bytes of all values of an organization: each is searched for in every answer. */
  total: 65_536,
  /**
   * Values with at least this many characters are masked in the results of all nodes that call other services; shorter
   * ones only in the results of the nodes that read them.
   */
  distinctive: 16,
  /** Parts of at least this many characters are masked in the results of the nodes that read the secret. */
  part: 12,
} as const

/** The environment variables of an organization, which nodes read as `env.<name>`. */
export const ENV = {
  count: 100,
  /** Characters of one value. */
  characters: 4_096,
  /** Bytes of all of them as JSON: each segment of a run reads them. */
  bytes: 32_768,
} as const

/** The `when` of an event trigger, which is rendered for each of its events: some 20 ms of CPU time at most. */
export const TRIGGER_WHEN = { work: 200_000 } as const

/** The keys of the settings that hold runs back, and what they can ask for. */
export const RUN_KEY = {
  /** Characters of the template, and of what it renders to. */
  template: 1_000,
  rendered: 200,
  /** The longest wait of a debounce, and the longest window of a rate. */
  span: '7d',
  /** Starts within a window of a rate: the times of so many are read for one start. */
  starts: 10_000,
} as const

/** The `rate` of a node. */
export const NODE_RATE = {
  /** The longest window: the turns of a run are kept as long as the run, which is a day after its end at least. */
  span: '1d',
  calls: 10_000,
} as const

/** The events that cancel the open runs of a workflow. */
export const CANCEL_ON = {
  rules: 10,
  /** Names of one rule. */
  events: 20,
  /** Characters of a condition, which is rendered for each open run and event. */
  when: 2_000,
} as const

/** The longest chain of runs that start each other, also through events: the next run is not started. */
export const CHAIN_DEPTH = 10

/** The signals to one run. */
export const SIGNAL = {
  /** Characters of its name. */
  name: 100,
  /** Bytes of the payload as JSON. */
  bytes: 65_536,
  /** Signals that no node has taken yet. */
  pending: 100,
}

/** The test of a workflow, all whose cases run within the time of a node test. */
export const WORKFLOW_TEST = {
  cases: 20,
  /** Bytes of the cases as YAML. */
  bytesOfCases: 262_144,
  stubs: 200,
  /** Rows of nodes of one case, those of items of loops included. */
  nodes: 2_000,
  /** Bytes of the data of one case. */
  bytes: 16 * 1024 * 1024,
  /** Characters of all results; the values of the cases beyond are left out. */
  resultCharacters: 800_000,
  /** Nodes and effects of a case without values. */
  shortNodes: 100,
  /** Calls of one node, and lines of the log of one case. */
  calls: 20,
  logLines: 100,
} as const

/** The sample outputs of a workflow's nodes. */
export const SAMPLE = {
  /** Bytes of one output as JSON. */
  bytes: 65_536,
  /** Samples of one workflow. The test of a node reads them all. */
  count: 50,
} as const

/** `output_schema` of a node. */
export const OUTPUT_SCHEMA = {
  /** Characters as JSON. */
  characters: 32_768,
  /** Levels of nested schemas. */
  depth: 20,
  /** Values of an output × alternatives of the schema: each value may be compared with all. */
  checks: 2_000_000,
} as const

/** Nodes that work on a list in memory. */
export const LIST = {
  items: 10_000,
  /** Fields to sort or group by, and values of groups. */
  fields: 10,
  conditions: 20,
  /**
   * Comparisons of a filter, some 0.5 µs each. A value counts as one, plus one for each 100 characters and each member.
   */
  comparisons: 1_000_000,
} as const

/**
 * Levels of nested lists and objects in a node's value. JSON.stringify and PostgreSQL overflow their stacks at some
 * thousands.
 */
export const VALUE_DEPTH = 200

/** The pages of a node with `paginate`, whose items are a list in memory. */
export const PAGES = {
  default: 100,
  most: 1_000,
  /** Milliseconds after which an attempt leaves the next page to another one, so that its slot becomes free. */
  attemptMs: 5_000,
} as const

/** Nodes that read a text. */
export const TEXT = {
  /** Characters of a CSV or JSON text, or of a text to split or to hash. */
  characters: 1_048_576,
  /** Rows of a CSV text, or parts of a text to split. */
  parts: 10_000,
  /** Characters of the separator of a text to split. */
  separator: 1_000,
} as const

/** The values that workflows keep between runs. */
export const KEY_VALUES = {
  /** Keys of an organization. A new key counts them, which takes some 10 ms. */
  count: 100_000,
  /** Characters of a key. */
  key: 200,
  /** Bytes of a value as JSON. The run that writes it keeps a copy. */
  bytes: 32_768,
  /** Keys of one list. */
  page: 100,
  /** The largest number that can be incremented: JSON numbers are exact up to some 9e15. */
  number: 1e15,
} as const

/** The knowledge base of an organization. */
export const KNOWLEDGE = {
  collections: 200,
  documents: 10_000,
  /** Passages of all documents. A search ranks the passages that match: 1,000 take some 10 ms. */
  passages: 100_000,
  /** Passages of a collection whose language can be changed: each is indexed again, some 5,000 in a second. */
  passagesToIndex: 10_000,
  /** Bytes of a document's text or markup in UTF-8. The JSON of a request has at most 1 MiB. */
  bytes: 1_000_000,
  title: 500,
  tags: 50,
  /** Characters of a tag. */
  tag: 64,
  /** Characters of a passage: some 300 words, which a model can quote. */
  passage: 1_600,
  /** A section with fewer characters shares a passage with the next one. */
  section: 400,
  /** Characters of the headings above a passage. */
  heading: 300,
  /** Characters of a query. */
  query: 2_000,
  /** The words of a query that count: its longest ones. Each takes time for each passage that has it. */
  words: 32,
  /** Passages that a node finds. */
  page: 20,
  /** Numbers of a vector. */
  dimensions: 4_096,
  /** Passages whose vectors one request asks for. */
  embedded: 32,
  /** Passages that `mode` vector or hybrid ranks: its pages end there. */
  fused: 200,
  /** Passages whose vectors are compared exactly with that of a query; the signs of the vectors select them. */
  compared: 400,
  /** Different embeddings of the collections of one search: each is a request to its endpoint. */
  models: 3,
  /** Bytes of a PDF or DOCX file. */
  fileBytes: 20_000_000,
  /** Bytes of the parts of a file together, decompressed. */
  inflatedBytes: 100_000_000,
  /** Pages of a PDF file. */
  pdfPages: 2_000,
} as const

/** Files. The plan of an organization has lower limits of bytes. */
export const FILES = {
  /** Bytes of one file, in any plan. */
  bytes: 104_857_600,
  /** Characters of a name. */
  name: 255,
  /** Attachments of one mail. */
  attachments: 10,
  /** Bytes of the attachments of one mail: most servers accept mails of 25 MB, and base64 adds a third. */
  attachmentBytes: 15_728_640,
} as const

/** Loops. */
export const LOOP = {
  items: 10_000,
  /** Turns of one `repeat`. */
  turns: 10_000,
  /** Items of one loop in progress at the same time. */
  concurrency: 50,
  /** Items of all loops of a run in progress: each segment loads their nodes. A nested loop always gets one. */
  open: 200,
  /**
   * Nodes of the bodies of these items, with those of loops in them. Each that waits is an event of the history of a
   * resumed run: Temporal terminates a workflow with 51,200 events, so that the run could never be resumed.
   */
  nodes: 10_000,
  /** Loops of one workflow: the analysis of bodies takes time in proportion to loops × edges. */
  perWorkflow: 50,
  /** Levels of nested loops. */
  depth: 5,
} as const

/**
 * Calls of other services by one run that are in progress at the same time; the next ones start when others end. Temporal
 * keeps at most 100 events for a workflow task in progress (`history.maximumBufferedEventsBatch`), two for each call that
 * ends meanwhile. At the next event it fails the task; the SDK did not survive that in a run with 500 calls, which was
 * stuck for good with a nondeterminism error. It also refuses a workflow that waits for more than 2,000 calls.
 */
export const OPEN_CALLS = 45

/** Regular expressions in mapping rules (RE2: time is text × program). */
export const PATTERN = {
  /** Characters of a pattern. */
  characters: 500,
  /** Instructions of the compiled program; `a{1,1000}` has 2,000. */
  program: 1_000,
  /** Instructions of all patterns of one webhook together. */
  programs: 5_000,
  /** UTF-16 units of the text that a pattern reads: more than any field holds. */
  text: 16_384,
} as const

/** The body of an incoming webhook. */
export const DOCUMENT = {
  depth: 32,
  /** Scalars, lists and objects together. */
  values: 30_000,
  /** `<` and `=` in XML, counted before parsing: 160,000 take over a second. 30,000 values never have as many. */
  xmlMarks: 40_000,
  /** Fields of a form. */
  formFields: 1_000,
  /** Characters of the name of a member. */
  name: 1_000,
} as const

/** A CSV file. */
export const CSV = {
  /**
   * Bytes of a row with its delimiters; a text field holds 100,000 characters. A longer row has usually lost a quote.
   */
  rowBytes: 1024 * 1024,
  columns: 1_000,
  /** Cells of a row, empty ones included: spreadsheets leave many empty cells. Parsing them takes some 10 ms. */
  cells: 131_072,
  /** Bytes that are parsed before the event loop continues. */
  turn: 4_096,
} as const

/** The tools that a node gives a language model. */
export const AI_TOOLS = {
  /** Answers of the model that call tools; the next one must not. */
  rounds: 5,
  /** Calls in one answer; the others are refused. */
  callsPerRound: 8,
  /** Records of one call. */
  records: 20,
  argumentCharacters: 5_000,
  resultCharacters: 20_000,
} as const

/** The JavaScript of a node, which runs in a thread. */
export const CODE = {
  characters: 32_768,
  /** Milliseconds of wall-clock time: threads have a low priority, and the machine may be busy. */
  ms: 3_000,
  /** Milliseconds after which the thread is ended: some functions of QuickJS cannot be interrupted. */
  killMs: 6_000,
  /** The longest wait for a thread, in milliseconds: an organization has one thread at a time. */
  waitMs: 120_000,
  memoryBytes: 64 * 1024 * 1024,
  /** Characters of the result as JSON; an output may have 1 MiB. */
  resultCharacters: 1_000_000,
  logLines: 100,
  logCharacters: 500,
} as const

/** Analytics queries. */
export const ANALYTICS = {
  dimensions: 2,
  /** Values of one filter. */
  values: 100,
  groups: 100,
  defaultGroups: 10,
  buckets: 1_000,
  rows: 10_000,
  ms: 10_000,
  /** Saved reports of an organization, and the charts of one. */
  reports: 500,
  charts: 20,
} as const
