import type { ToolName } from './grouping.ts'

/** What a model reads about a tool, besides what is derived from its operations. */
export interface ToolText {
  title: string
  /** When to use it, and when another one. */
  description: string
  /** Example arguments; default: the example of the operation's route. */
  example?: object
  /**
   * The actions without the argument `action`, in this order: the first one whose path arguments are all given. Of the
   * generic tools it is the action of the kind itself.
   */
  defaults?: readonly string[]
}

export const TOOLS: Readonly<Record<ToolName, ToolText>> = {
  search_records: {
    title: 'Search records',
    description:
      'Lists and searches records and other resources, page by page. `q` is full text; `filters` compares fields; `related_to` lists what is associated with a record. Ask for few `fields` and a small `limit`. For documents use search_knowledge, for totals query_analytics, for runs get_run.',
    example: {
      kind: 'deals',
      filters: { stage: 'won', 'amount[gte]': 1000 },
      fields: ['name', 'amount'],
      limit: 10,
    },
  },
  get_record: {
    title: 'Get a record',
    description:
      'Retrieves one record or resource by its id. If you only know a name or an email address, use search_records.',
    example: { kind: 'contacts', id: '0198…' },
  },
  create_record: {
    title: 'Create a record',
    description:
      'Creates a record or resource; its members go into `fields`. First look for it with search_records: nothing prevents duplicates. For many at once use update_record, action batch. `associations` links the new record: [{"object": "companies", "id": "…"}].',
    example: { kind: 'contacts', fields: { first_name: 'Ada', email: 'ada@example.com' } },
  },
  update_record: {
    title: 'Update a record',
    description:
      'Changes a record or resource, or does something with it (restore, merge, activate, resend, …). In `fields`, absent members stay as they are, null clears one. To run a workflow use run_workflow, to change one create_workflow.',
    example: { kind: 'deals', id: '0198…', fields: { stage: 'won' } },
  },
  delete_record: {
    title: 'Delete a record',
    description:
      'Deletes a record or resource. Records can be restored for 30 days (update_record, action restore); other resources cannot. To end an association use link_records, action unlink. Needs a confirmation.',
    example: { kind: 'tasks', id: '0198…' },
  },
  link_records: {
    title: 'Link two records',
    description:
      'Associates two records of any kinds, or ends their association (action unlink). To see what is linked use search_records with `related_to`.',
    example: {
      entity: 'contacts',
      entity_id: '0198…',
      target: 'companies',
      target_id: '0198…',
      label: 'decision maker',
    },
    defaults: ['link'],
  },
  describe_records: {
    title: 'Describe records',
    description:
      'Lists the kinds or, for a `kind`, its fields with types, custom fields, accepted values and filters; for other resources the arguments of each action. Use it before you write fields. Also: what this key may do (get_me), scopes, events.',
    example: { kind: 'deals' },
    defaults: ['get_schema', 'list_object_types'],
  },
  get_node_types: {
    title: 'Node types of workflows',
    description:
      'Lists the node types of workflows, or retrieves one with its config schema, output and example. Read get_authoring_guide first.',
    defaults: ['get_node_type', 'list_node_types'],
  },
  get_authoring_guide: {
    title: 'Guide to writing workflows',
    description:
      'The guide to the YAML of workflows. Read it once before you write or change one; without a topic it lists the topics.',
    example: {},
  },
  validate_workflow: {
    title: 'Validate a workflow',
    description:
      'Checks a YAML spec and lists all errors and warnings, each with its line and often what to write instead. Saves nothing. Repeat until `valid` is true, then create_workflow.',
    example: { spec: 'name: Greet\nnodes: …' },
  },
  create_workflow: {
    title: 'Create or change a workflow',
    description:
      'Creates a workflow from a YAML spec, as a draft; with `workflow_id` and `action` it changes, activates, deactivates or deletes one. Triggers fire only when it is active. Validate with validate_workflow first; run with run_workflow.',
    defaults: ['update_workflow', 'create_workflow'],
  },
  list_workflows: {
    title: 'Workflows',
    description:
      'Lists the workflows, or retrieves one with its YAML (`workflow_id`), its schedule, samples or versions (`action`). For what has run use get_run.',
    example: { q: 'welcome', active: true },
    defaults: ['get_workflow', 'list_workflows'],
  },
  run_workflow: {
    title: 'Run a workflow',
    description:
      'Runs a workflow by `name` or `workflow_id`, with all its effects, or acts on runs: cancel, pause, resume, retry, answer what a run waits for (signal_run). Starting needs a confirmation, which shows what would run. `wait_seconds` waits for the end; else poll with get_run. To try one node use test_node.',
    example: { name: 'Welcome', inputs: { email: 'ada@example.com' }, wait_seconds: 10 },
    defaults: ['run_workflow', 'run_workflow_by_name'],
  },
  get_run: {
    title: 'Runs',
    description:
      'Lists runs (by status, workflow, time), or retrieves one by `run_id` with the input, output and error of every node. Use it after run_workflow and to debug; then retry with run_workflow, action retry_run.',
    example: { status: 'failed', limit: 5 },
    defaults: ['get_run', 'get_run_batch', 'list_runs'],
  },
  test_node: {
    title: 'Test a node',
    description:
      'Runs one node alone on sample inputs, with its real effects; the confirmation shows the calls it would make. Checks a config before it is in a workflow.',
    defaults: ['test_node_of_workflow', 'test_node'],
  },
  search_templates: {
    title: 'Workflow templates',
    description:
      'Searches the ready-made workflows, or retrieves one with its YAML by `template_id`. Look here before you write a workflow; then import_template.',
    example: { search: 'onboarding' },
    defaults: ['get_template', 'list_templates'],
  },
  import_template: {
    title: 'Import a template',
    description:
      'Creates a workflow, as a draft, from a template of search_templates. Adapt it with create_workflow, action update_workflow.',
  },
  search_knowledge: {
    title: 'Search the knowledge base',
    description:
      'Finds passages of documents by text, best first, with their sources: answer questions from them and cite the document. Also lists collections and documents, and retrieves one by `document_id`.',
    example: { q: 'refund after 30 days', limit: 5 },
    defaults: ['get_knowledge_document', 'search_knowledge'],
  },
  add_knowledge: {
    title: 'Add to the knowledge base',
    description:
      'Adds a document to a collection (`collection_id`, from search_knowledge with the action list_knowledge_collections), or changes collections and documents by `action`. For a note about a contact use create_record.',
    example: { collection_id: '0198…', title: 'Refunds', body: '# Refunds\n…', format: 'markdown' },
    defaults: ['update_knowledge_document', 'create_knowledge_document'],
  },
  query_analytics: {
    title: 'Analytics',
    description:
      'Computes a metric, by group, interval and period, or a ready dashboard (`action`). list_metrics names the metrics with their groups.',
    defaults: ['query_analytics'],
  },
}
