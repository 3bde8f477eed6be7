import { isObject } from '../../../../workflows/shared/is-object.ts'
import { normalise, SUBJECT_WORDS, SYNONYMS } from '../../records/synonyms.ts'
import { TEXT } from '../parse-body.ts'
import { memberPath } from './path.ts'

/** One scalar of a payload, with its name. */
export interface Leaf {
  /** Normalised: lower case, letters and digits only. */
  name: string
  /** Its name as sent. */
  key: string
  /** The normalised names of its ancestors, outermost first. */
  context: string[]
  /** The path for display: `data.fields[0].value`. */
  path: string
  value: string | number | boolean
  /**
   * The path of the object that the value describes: of `data.name.first` and of an answer in `data.answers[0]` it is
   * `data`.
   */
  holder: string
  /** Its position in the outermost list of several objects. */
  entry?: { list: string; index: number } | undefined
  /** The answer to a question: its name is the label of the question. */
  isAnswer?: true
}

/**
 * All scalars of a payload, with their names. Form builders send lists of questions and answers instead of members:
 * there the label of the question is the name.
 */
export function leaves(payload: unknown): Leaf[] {
  const titles = questionTitles(payload)
  const found: Leaf[] = []
  // The body was an array: `items` is a made-up name.
  if (isObject(payload) && Array.isArray(payload.items) && Object.keys(payload).length === 1)
    walk(payload.items, 'items', '', { context: [], holder: '' })
  else walk(payload, '', '', { context: [], holder: '' })
  return found

  function walk(
    value: unknown,
    path: string,
    name: string,
    within: Pick<Leaf, 'context' | 'holder' | 'entry' | 'isAnswer'>,
  ): void {
    const scalar = scalarOf(value)
    if (scalar !== undefined) {
      if (scalar !== '') found.push({ name: normalise(name), key: name, path, value: scalar, ...within })
      return
    }
    if (Array.isArray(value)) {
      const isList = value.length > 1 && value.every((member) => isObject(member) && !isAnswer(member, name))
      value.forEach((member, index) => {
        const entry = within.entry ?? (isList ? { list: path, index } : undefined)
        walk(member, `${path}[${index}]`, name, { ...within, entry })
      })
      return
    }
    if (!isObject(value)) return
    const holder = isPartOf(name) ? within.holder : path
    const inner =
      name === ''
        ? { ...within, holder }
        : { ...within, holder, context: [...within.context, normalise(name)] }
    const { [TEXT]: text, ...attributes } = value
    if (text !== undefined) {
      // `<email type="work">` is named by its element, `<field name="Email">` by its attribute.
      const labels = LABELS.filter((label) => isText(attributes[label]))
      for (const label of [...labels.map((one) => String(attributes[one])), name])
        walk(text, path, label, within)
      for (const [key, member] of Object.entries(attributes))
        if (!labels.includes(key)) walk(member, memberPath(path, key), key, inner)
      return
    }
    const answer = path === '' ? undefined : answerOf(value, titles, name)
    if (answer) {
      for (const label of answer.labels)
        walk(answer.value, answer.members.reduce(memberPath, path), label, { ...within, isAnswer: true })
      return
    }
    for (const [key, member] of Object.entries(value)) walk(member, memberPath(path, key), key, inner)
  }

  function isAnswer(value: Record<string, unknown>, name: string): boolean {
    return value[TEXT] !== undefined || answerOf(value, titles, name) !== undefined
  }
}

/** `name: {first, last}` and `phones: [{mobile}]` describe the person around them; `company: {name}` does not. */
function isPartOf(name: string): boolean {
  const field = SYNONYMS.contacts[normalise(name)]?.field
  return field !== undefined && field !== 'company_name'
}

const LABELS = ['name', 'label', 'title', 'question', 'key', 'slug', 'ref', 'id']
const VALUES = ['value', 'values', 'answer', 'answers', 'answerDetails', 'response', 'text', 'raw_value']

/** Reads a question with its answer: `{name, values}`, `{key, label, value}`, Typeform's `{field, type, …}`. */
function answerOf(object: Record<string, unknown>, titles: Map<string, string>, key: string) {
  const { type, field } = object
  if (typeof type === 'string' && isObject(field) && object[type] !== undefined) {
    const chosen = object[type]
    const value = isObject(chosen) ? (chosen.label ?? chosen.labels ?? chosen.other) : chosen
    const labels = [field.title, titles.get(String(field.id)), field.ref, field.type].filter(isText)
    return { members: [type], value, labels }
  }
  const member = VALUES.find((name) => object[name] !== undefined)
  if (!member || Object.keys(object).length > 12) return undefined
  if (isRecord(object, key)) return undefined
  const named = LABELS.map((name) => object[name]).filter(isText)
  // HubSpot's `email: {value}` and Elementor's `fields[email][value]` are named by their key.
  const labels = [...named, ...(/^\d*$/.test(key) ? [] : [key])]
  const { members, value } = unwrapped([member], object[member])
  const holdsValue = scalarOf(value) !== undefined || Array.isArray(value)
  return holdsValue && labels.length > 0
    ? { members, value: chosen(value, object.options), labels }
    : undefined
}

/** LinkedIn wraps an answer in objects of one member: `answerDetails: {textQuestionAnswer: {answer}}`. */
function unwrapped(members: string[], value: unknown): { members: string[]; value: unknown } {
  const [only, ...others] = isObject(value) ? Object.entries(value) : []
  return only && others.length === 0 ? unwrapped([...members, only[0]], only[1]) : { members, value }
}

/** Tally sends the ids of the chosen options, and the options: the texts of those that were chosen. */
function chosen(value: unknown, options: unknown): unknown {
  if (!Array.isArray(value) || !Array.isArray(options)) return value
  const texts = new Map(
    options.filter(isObject).map(({ id, text, label, name }) => [id, [text, label, name].find(isText)]),
  )
  return value.map((one) => texts.get(one) ?? one)
}

/** A `deal` or `contact` object with a name is a record; if its name is the key itself (`Deal`), it is a question. */
function isRecord({ name, title }: Record<string, unknown>, key: string): boolean {
  const own = [name, title].filter(isText)
  const is = normalise(key)
  return RECORD_WORDS.has(is) && own.length > 0 && own.every((one) => normalise(one) !== is)
}

const RECORD_WORDS = new Set(Object.values(SUBJECT_WORDS).flatMap((words) => [...words]))

/** Typeform's answers refer to their question by id; the titles are in the definition of the form. */
function questionTitles(payload: unknown): Map<string, string> {
  const titles = new Map<string, string>()
  const response = isObject(payload) && isObject(payload.form_response) ? payload.form_response : payload
  const definition = isObject(response) ? response.definition : undefined
  const fields = isObject(definition) && Array.isArray(definition.fields) ? definition.fields : []
  for (const field of fields)
    if (isObject(field) && isText(field.title)) titles.set(String(field.id), field.title)
  return titles
}

function scalarOf(value: unknown): string | number | boolean | undefined {
  if (typeof value === 'string') return value.trim()
  return typeof value === 'number' || typeof value === 'boolean' ? value : undefined
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
