import { isUtf8 } from 'node:buffer'
import { XMLParser, XMLValidator } from 'fast-xml-parser'
import qs from 'qs'
import { DOCUMENT } from '../../../workflows/shared/limits.ts'
import { toStorable } from '../../../workflows/shared/storable-text.ts'
import { AppError } from '../errors.ts'
import { firstCharacters } from '../records/values.ts'
import { parseMultipart } from './multipart.ts'

export type Payload = Record<string, unknown>

/**
 * The body as an object, by its Content-Type: JSON, a form (nested as in PHP and Rails), a multipart form, or XML (below
 * its root element). An array becomes `{items: [...]}`.
 * Throws unsupported_media_type, and invalid_request for a malformed body or a forbidden name such as `__proto__`.
 */
export function parseBody(bytes: Buffer, contentType: string): Payload {
  const { format, charset } = typeOf(contentType, bytes)
  if (format === 'multipart') return toPayload(parseMultipartForm(bytes, charset, contentType))
  if (bytes.length === 0) throw new AppError('invalid_request', 'the body is empty')
  // The escapes of a form are bytes in its charset, like those that it did not escape.
  const isEscaped = format === 'form' && charset !== 'utf-8'
  return toPayload(parsers[format](isEscaped ? escaped(bytes) : decode(bytes, charset), charset))
}

/** The body as text, for the log; never throws. `parseText` reads it. */
export function textOfBody(bytes: Buffer, contentType: string): string {
  try {
    const { charset } = typeOf(contentType, bytes)
    return new TextDecoder(charset, { ignoreBOM: true }).decode(bytes)
  } catch {
    return bytes.toString('utf8')
  }
}

/** As `parseBody`, for the text of a body. */
export function parseText(text: string, contentType: string): Payload {
  const { format, charset } = typeOf(contentType, Buffer.from(text))
  if (format === 'multipart') return toPayload(parseMultipartForm(Buffer.from(text), 'utf-8', contentType))
  return toPayload(parsers[format](text.replace(/^\ufeff/, ''), charset))
}

function typeOf(contentType: string, bytes: Buffer): { format: Format; charset: string } {
  const { essence, charset: stated } = parseContentType(contentType)
  const format = formatOf(essence)
  if (!format)
    throw new AppError('unsupported_media_type', 'the body must be JSON, a form or XML', {
      hint: 'application/json, application/x-www-form-urlencoded, multipart/form-data or application/xml',
    })
  return { format, charset: stated ?? (format === 'xml' ? declaredCharset(bytes) : undefined) ?? 'utf-8' }
}

function toPayload(parsed: unknown): Payload {
  const payload = sanitised(parsed, DOCUMENT.depth, { left: DOCUMENT.values })
  if (Array.isArray(payload)) return { items: payload }
  if (typeof payload !== 'object' || payload === null)
    throw new AppError('invalid_request', 'the body must be an object or a list')
  return payload as Payload
}

type Format = 'json' | 'form' | 'multipart' | 'xml'

const parsers: Record<Exclude<Format, 'multipart'>, (text: string, charset: string) => unknown> = {
  json: (text) => parseJson(text),
  form: (text, charset) => opened(parseForm(text, charset)),
  xml: (text) => parseXml(text),
}

function parseMultipartForm(bytes: Buffer, charset: string, contentType: string): unknown {
  const text = (part: Buffer) => (part.length === 0 ? '' : decode(part, charset))
  const fields = parseMultipart(bytes, contentType, text)
  const pairs = fields.map((field) => field.map((one) => encodeURIComponent(toStorable(one))).join('='))
  return opened(parseForm(pairs.join('&'), 'utf-8'))
}

/** Jotform's answers, and an event of Dropbox Sign, are JSON in a field of the form. */
function opened(form: unknown): unknown {
  const { rawRequest, formID, json } = form as Payload
  if (typeof json === 'string' && /^\s*\{.*"event_hash"/s.test(json))
    return { ...(form as Payload), json: parseJson(json) }
  if (typeof rawRequest !== 'string' || formID === undefined) return form
  return { ...(form as Payload), rawRequest: parseJson(rawRequest) }
}

function parseContentType(value: string): { essence: string; charset: string | undefined } {
  const [essence = '', ...parameters] = value.toLowerCase().split(';')
  const charset = parameters.map((p) => /^charset="?([^"]*)"?$/.exec(p.trim())?.[1]).find(Boolean)
  return { essence: essence.trim(), charset: charset === undefined ? undefined : charsetNamed(charset) }
}

/** The name by which the decoder knows a charset. ISO-8859-1 is read as windows-1252, as browsers do. */
function charsetNamed(name: string): string {
  try {
    return new TextDecoder(name.trim()).encoding
  } catch {
    throw new AppError('unsupported_media_type', `the charset ${firstCharacters(name, 40)} is not known`, {
      hint: 'send UTF-8',
    })
  }
}

/** The encoding in the declaration of an XML document, without which it is UTF-8. */
function declaredCharset(bytes: Buffer): string | undefined {
  // UTF-16 begins with a byte order mark, and its declaration cannot be read as ASCII.
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  const declaration = bytes.subarray(0, 200).toString('latin1')
  const name = /^(?:\u00ef\u00bb\u00bf)?\s*<\?xml\s[^>]*?\bencoding\s*=\s*["']([\w.:-]+)["']/i.exec(
    declaration,
  )?.[1]
  // A declaration that can be read as ASCII is not UTF-16: some platforms write so of any text.
  return name === undefined || /^utf-16/i.test(name) ? undefined : charsetNamed(name.toLowerCase())
}

/** Whether a body of this Content-Type is JSON. */
export const isJson = (contentType: string): boolean =>
  formatOf(parseContentType(contentType).essence) === 'json'

export const isXml = (contentType: string): boolean =>
  formatOf(parseContentType(contentType).essence) === 'xml'

function formatOf(essence: string): Format | undefined {
  if (/^application\/(json|[\w.-]+\+json)$/.test(essence)) return 'json'
  if (essence === 'application/x-www-form-urlencoded') return 'form'
  if (essence === 'multipart/form-data') return 'multipart'
  if (/^((application|text)\/xml|application\/[\w.-]+\+xml)$/.test(essence)) return 'xml'
  return undefined
}

function decode(bytes: Buffer, charset: string): string {
  if (charset === 'utf-8' && !isUtf8(bytes)) throw new AppError('invalid_request', 'the body is not UTF-8')
  try {
    // Also removes a byte order mark, which some senders write.
    return new TextDecoder(charset, { fatal: true }).decode(bytes)
  } catch {
    throw new AppError('invalid_request', `the body is not ${charset}`)
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new AppError('invalid_request', 'the body is not valid JSON')
  }
}

function parseForm(text: string, charset: string): unknown {
  const decoder = charset === 'utf-8' ? {} : { decoder: (part: string) => unescaped(part, charset) }
  try {
    return qs.parse(text, {
      ...decoder,
      depth: DOCUMENT.depth,
      strictDepth: true,
      parameterLimit: DOCUMENT.formFields,
      throwOnLimitExceeded: true,
      arrayLimit: 100,
      ignoreQueryPrefix: false,
    })
  } catch {
    throw new AppError('invalid_request', 'the form has too many fields or is nested too deeply')
  }
}

/** A name or value of a form in another charset than UTF-8. What is outside of ASCII is decoded already. */
const unescaped = (part: string, charset: string): string =>
  part.replaceAll('+', ' ').replace(/[\0-\x7f]+/g, (ascii) => {
    const bytes = ascii.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
    return decode(Buffer.from(bytes, 'latin1'), charset)
  })

const escaped = (bytes: Buffer): string =>
  bytes.toString('latin1').replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16)}`)

/** The member with the text of an XML element that also has attributes or child elements. */
export const TEXT = '#text'
const CDATA = '#cdata'
const ATTRIBUTES = '#attributes'

function parseXml(text: string): unknown {
  // Entities allow XML bombs, and no webhook needs a document type.
  if (/<!(DOCTYPE|ENTITY)/i.test(text))
    throw new AppError('invalid_request', 'XML with a document type is refused')
  if ((text.match(/[<=]/g)?.length ?? 0) > DOCUMENT.xmlMarks)
    throw new AppError('invalid_request', 'the XML has too many elements or attributes')
  const valid = XMLValidator.validate(text)
  if (valid !== true)
    throw new AppError('invalid_request', `the body is not valid XML at line ${valid.err.line}`)
  const document = readXml(text)
  const [[name, root] = ['', '']] = Object.entries(document)
  // The validator accepts content after the root element, and the parser drops text there.
  if (Object.keys(document).length !== 1 || Array.isArray(root) || !text.trimEnd().endsWith('>'))
    throw new AppError('invalid_request', 'the body is not valid XML: it must have one root element')
  const element = elementOf(root)
  return isText(element) && !hasElements(root) ? { [name]: element } : element
}

function readXml(text: string): Payload {
  const parser = new XMLParser({
    processEntities: false,
    ignoreAttributes: false,
    attributeNamePrefix: '',
    attributesGroupName: ATTRIBUTES,
    textNodeName: TEXT,
    parseTagValue: false,
    parseAttributeValue: false,
    ignoreDeclaration: true,
    ignorePiTags: true,
    removeNSPrefix: true,
    cdataPropName: CDATA,
    maxNestedTags: DOCUMENT.depth,
    tagValueProcessor: (_name, value) => decodeEntities(value),
    attributeValueProcessor: (_name, value) => decodeEntities(value),
  })
  try {
    return parser.parse(text) as Payload
  } catch {
    throw new AppError('invalid_request', 'the XML is nested too deeply or has a forbidden name')
  }
}

const isText = (element: unknown) => typeof element === 'string' || Object.hasOwn(Object(element), TEXT)

const hasElements = (parsed: unknown) =>
  typeof parsed === 'object' && Object.keys(Object(parsed)).some((name) => !name.startsWith('#'))

const NAMED: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** Replaces the five entities of XML and numeric references, in one pass: nothing expands. */
function decodeEntities(text: string): string {
  return text.replace(
    /&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(amp|lt|gt|quot|apos));/gi,
    (all, decimal, hex, name) => {
      if (name) return NAMED[name.toLowerCase()]!
      const point = decimal ? Number(decimal) : Number.parseInt(hex, 16)
      return point > 0x10ffff ? all : String.fromCodePoint(point)
    },
  )
}

/**
 * An element that has only text becomes that text. Another becomes its members: elements, attributes (an element takes
 * precedence over an attribute of its name), and its text with CDATA sections as TEXT.
 */
function elementOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(elementOf)
  if (typeof value !== 'object' || value === null) return value
  const { [ATTRIBUTES]: attributes, [CDATA]: cdata, [TEXT]: text, ...elements } = value as Payload
  const joined = `${text ?? ''}${[cdata ?? ''].flat().join('')}`
  const members = [
    ...Object.entries(elements).map(([name, member]) => [name, elementOf(member)]),
    ...Object.entries(attributes ?? {}).filter(([name]) => !Object.hasOwn(elements, name)),
  ]
  if (members.length === 0) return joined
  return Object.fromEntries(joined === '' ? members : [...members, [TEXT, joined]])
}

const FORBIDDEN = new Set(['__proto__', 'constructor', 'prototype'])

/** A copy that can be stored and traversed. Throws invalid_request if it is too large or has a forbidden name. */
function sanitised(value: unknown, depth: number, budget: { left: number }): unknown {
  if (budget.left-- <= 0)
    throw new AppError('invalid_request', `the body has more than ${DOCUMENT.values} values`)
  if (typeof value === 'string') return toStorable(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth === 0)
    throw new AppError('invalid_request', `the body is nested deeper than ${DOCUMENT.depth} levels`)
  if (Array.isArray(value)) return value.map((member) => sanitised(member, depth - 1, budget))
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      if (name.length > DOCUMENT.name)
        throw new AppError('invalid_request', `a name in the body is longer than ${DOCUMENT.name} characters`)
      if (FORBIDDEN.has(name)) throw new AppError('invalid_request', `the name ${name} is not allowed`)
      return [toStorable(name), sanitised(member, depth - 1, budget)]
    }),
  )
}
