import {
  type GetPromptResult,
  type Prompt,
  ProtocolError,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server'
import type { ToolName } from './grouping.ts'

/** Prompts: the tasks that people start by hand. Each names its tools, without which a key does not see it. */

interface PromptText {
  name: string
  title: string
  description: string
  tools: readonly ToolName[]
  arguments: readonly { name: string; description: string; required: boolean }[]
  /** `{name}` is the argument. */
  text: string
}

const PROMPTS: readonly PromptText[] = [
  {
    name: 'build_workflow',
    title: 'Build a workflow',
    description: 'Writes, validates and saves a workflow from a description.',
    tools: ['get_authoring_guide', 'validate_workflow', 'create_workflow'],
    arguments: [{ name: 'goal', description: 'What the workflow is to do, and when.', required: true }],
    text: 'Build a workflow: {goal}\nLook for a template first, then read the authoring guide. Write the spec, validate it until it has no errors, save it, and show me its preview before anything runs. Do not activate it before I agree.',
  },
  {
    name: 'debug_run',
    title: 'Debug a failed run',
    description: 'Finds out why a run failed and proposes a correction.',
    tools: ['get_run'],
    arguments: [{ name: 'run_id', description: 'The run; default: the latest failed one.', required: false }],
    text: 'Find out why this run of a workflow failed: {run_id} (without an id: the latest failed run). Read its nodes, name the cause with the input that led to it, and propose the correction: of the workflow, of the data, or only a retry. Change nothing before I agree.',
  },
  {
    name: 'clean_up_duplicates',
    title: 'Clean up duplicates',
    description: 'Finds records that describe the same person or company, and merges them.',
    tools: ['search_records', 'update_record'],
    arguments: [{ name: 'kind', description: 'contacts or companies.', required: true }],
    text: 'Find duplicates among the {kind}: the same email address, domain or phone number, or nearly the same name. Show me the pairs with what speaks for and against each, and which one to keep. Merge only the pairs that I confirm.',
  },
  {
    name: 'pipeline_review',
    title: 'Weekly pipeline review',
    description: 'What changed in the deals within a week, and what needs attention.',
    tools: ['query_analytics', 'search_records'],
    arguments: [],
    text: 'Review the pipeline of the last seven days: deals that were created, won and lost with their amounts, open deals by stage, deals whose expected close date has passed, and open deals without a change for two weeks. Keep currencies apart. End with the five deals that need attention, and why.',
  },
  {
    name: 'answer_from_knowledge',
    title: 'Answer from the knowledge base',
    description: 'Answers a question from documents only, with its sources.',
    tools: ['search_knowledge'],
    arguments: [{ name: 'question', description: 'The question.', required: true }],
    text: 'Answer this question from the knowledge base only: {question}\nSearch with several wordings. Cite the title and source of each document that you use. If the documents do not answer it, say so.',
  },
]

/** The prompts whose tools a key sees. */
export const listPrompts = (tools: ReadonlySet<string>): Prompt[] =>
  offered(tools).map(({ name, title, description, arguments: given }) => ({
    name,
    title,
    description,
    arguments: [...given],
  }))

const offered = (tools: ReadonlySet<string>) =>
  PROMPTS.filter((prompt) => prompt.tools.every((tool) => tools.has(tool)))

/** The names of a prompt's arguments; undefined for an unknown prompt. */
export const argumentsOfPrompt = (tools: ReadonlySet<string>, name: string): string[] | undefined =>
  offered(tools)
    .find((one) => one.name === name)
    ?.arguments.map((one) => one.name)

/** The text of a prompt with its arguments. Throws for an unknown prompt and a missing argument. */
export function getPrompt(
  tools: ReadonlySet<string>,
  name: string,
  given: Record<string, string> = {},
): GetPromptResult {
  const prompt = offered(tools).find((one) => one.name === name)
  if (!prompt)
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      `there is no prompt ${name.slice(0, 100)}: see prompts/list`,
    )
  const missing = prompt.arguments.find((one) => one.required && !given[one.name])
  if (missing) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `${missing.name} is required`)
  const text = prompt.text.replace(/\{(\w+)\}/g, (_, argument) => given[argument] ?? 'none given')
  return { description: prompt.description, messages: [{ role: 'user', content: { type: 'text', text } }] }
}
