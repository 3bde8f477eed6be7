import { createHash } from 'node:crypto'
import type { OpenApi, Operation } from './openapi.ts'
import type { Parameter } from './openapi-parameters.ts'

/**
 * The reference page: the OpenAPI document as plain HTML. No script, nothing from elsewhere, so it works without
 * internet and needs no trust.
 */
export function docsPage(document: OpenApi): string {
  const byTag = document.tags.map((tag) => ({ ...tag, operations: operationsOf(document, tag.name) }))
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${html(document.info.title)} reference</title>
<style>${STYLE}</style>
</head>
<body>
<nav aria-label="Operations">
<h1>${html(document.info.title)}</h1>
<p><a href="/openapi.json">openapi.json</a></p>
${byTag.map(({ name, operations }) => `<h2>${html(name)}</h2><ul>${operations.map(link).join('')}</ul>`).join('\n')}
</nav>
<main>
<p>${prose(document.info.description)}</p>
<p>Base address: <code>${html(document.servers[0]!.url)}</code></p>
${byTag.map(({ name, description, operations }) => `<h2>${html(name)}</h2><p>${prose(description)}</p>${operations.map((one) => section(document, one)).join('\n')}`).join('\n')}
<h2>Parameters of several operations</h2>
<table><tbody>${Object.entries(document.components.parameters)
    .map(([key, one]) => row(one, `parameter-${key}`))
    .join('\n')}</tbody></table>
<h2>Errors</h2>
<p>Every error has one shape; a 422 lists everything that is wrong in <code>detail</code>.</p>
${json(document.components.schemas.ErrorResponse)}
<h2>Shapes</h2>
${Object.entries(document.components.schemas)
  .filter(([name]) => name !== 'ErrorResponse')
  .map(([name, shape]) => `<section id="schema-${html(name)}"><h3>${html(name)}</h3>${json(shape)}</section>`)
  .join('\n')}
</main>
</body>
</html>
`
}

/** For the page: nothing may run, nothing may be fetched, nobody may frame it. */
export const docsPolicy = () =>
  `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

interface Listed {
  method: string
  path: string
  operation: Operation
}

function operationsOf(document: OpenApi, tag: string): Listed[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation.tags.includes(tag))
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
}

const link = ({ method, operation }: Listed) =>
  `<li><a href="#${html(operation.operationId)}"><b>${method}</b> ${html(operation.summary)}</a></li>`

function section(document: OpenApi, { method, path, operation }: Listed): string {
  const needs = needsOf(operation)
  return `<section id="${html(operation.operationId)}">
<h3>${html(operation.summary)}</h3>
<p class="call"><b>${method}</b> <code>${html(path)}</code> <span>${html(needs)}</span></p>
${operation.description ? `<p>${prose(operation.description)}</p>` : ''}
${parameters(document, operation)}
${operation.requestBody ? details('Body', operation.requestBody.content) : ''}
${Object.entries(operation.responses)
  .map(([status, response]) => answer(document, status, response))
  .join('\n')}
</section>`
}

function needsOf(operation: Operation): string {
  const { 'x-scopes': scopes, 'x-role': role } = operation
  if (role) return `role: ${role}`
  if (scopes) return `scope: ${scopes.length > 0 ? scopes.join(', ') : 'any key'}`
  return 'X-Webhook-Secret'
}

/** Those of its own in a table; those that others have, too, are described once, further down. */
function parameters(document: OpenApi, { parameters }: Operation): string {
  const keys = parameters.flatMap((one) => ('$ref' in one ? nameIn(one.$ref) : []))
  const own = parameters.filter((one): one is Parameter => !('$ref' in one))
  const links = keys.map((key) => {
    const { name } = document.components.parameters[key]!
    return `<a href="#parameter-${html(key)}"><code>${html(name)}</code></a>`
  })
  return (
    (own.length > 0 ? `<table><tbody>${own.map((one) => row(one)).join('')}</tbody></table>` : '') +
    (links.length > 0 ? `<p>Parameters: ${links.join(', ')}</p>` : '')
  )
}

const nameIn = (reference: string): string => reference.split('/').at(-1)!

const row = (one: Parameter, id = '') =>
  `<tr${id && ` id="${html(id)}"`}><td><code>${html(one.name)}</code></td>` +
  `<td>${one.in}${one.required ? ', required' : ''}</td>` +
  `<td>${prose(one.description ?? '')} <code>${linked(html(JSON.stringify(one.schema)))}</code></td></tr>`

function answer(document: OpenApi, status: string, response: Record<string, unknown>): string {
  if (response.content) return details(`${status} ${String(response.description)}`, response.content)
  const shared = document.components.responses[status] as { description: string } | undefined
  return `<p class="status"><b>${status}</b> ${html(shared?.description ?? '')}</p>`
}

const details = (title: string, content: unknown) =>
  Object.entries(content as Record<string, unknown>)
    .map(([type, shape]) => {
      const other = type === 'application/json' ? '' : ` (${type})`
      return `<details><summary>${html(title + other)}</summary>${json(shape)}</details>`
    })
    .join('\n')

const json = (value: unknown) => `<pre>${linked(html(JSON.stringify(value, null, 2)))}</pre>`

/** References to shapes lead to where they are shown. */
const linked = (escaped: string) =>
  escaped.replace(/#\/components\/schemas\/(\w+)/g, '<a href="#schema-$1">$&</a>')

const ESCAPES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
/** Text with code in backticks, in paragraphs. */
const prose = (text: string) =>
  html(text)
    .replace(/`([^`]+)`/g, '<code>$1</code>')
    .replaceAll('\n\n', '</p><p>')

const html = (text: string) => text.replace(/[&<>"']/g, (character) => ESCAPES[character]!)

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { margin: 0; display: grid; grid-template-columns: 18rem minmax(0, 1fr); }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1rem; box-sizing: border-box; border-right: 1px solid #8884; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav h2 { font-size: 1rem; margin: 1rem 0 0.2rem; }
nav b { font-size: 0.7rem; opacity: 0.7; }
main { padding: 1rem 2rem; max-width: 56rem; }
section { border-top: 1px solid #8884; padding: 0.5rem 0 1rem; }
.call span { opacity: 0.7; margin-left: 1rem; }
.status { margin: 0.1rem 0; font-size: 0.9rem; opacity: 0.8; }
table { border-collapse: collapse; } td { padding: 0.2rem 0.8rem 0.2rem 0; vertical-align: top; }
pre { overflow: auto; background: #8881; padding: 0.7rem; border-radius: 4px; }
td code { overflow-wrap: anywhere; }
@media (max-width: 50rem) { body { display: block; } nav { position: static; height: auto; border: 0; } }
`
