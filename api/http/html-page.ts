import { createHash } from 'node:crypto'
import { escaped } from '../../workflows/shared/escape-html.ts'

/** The few pages that people see who follow a link in a mail. */

const STYLE = `
body { font: 16px/1.5 system-ui, sans-serif; max-width: 36rem; margin: 3rem auto; padding: 0 1rem; color: #1a1a1a }
h1 { font-size: 1.4rem } pre { font: inherit; white-space: pre-wrap } .facts { color: #666; font-size: .9rem }
label { display: block; margin: 1.5rem 0 .25rem } textarea, input { width: 100%; font: inherit; box-sizing: border-box } textarea { min-height: 5rem }
button { font: inherit; padding: .5rem 1.5rem; margin: 1rem .5rem 0 0; border: 1px solid #888; border-radius: 4px; background: #fff; cursor: pointer }
button.approve { background: #1a7f37; border-color: #1a7f37; color: #fff }
`

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** Nothing from elsewhere, in no frame; forms post to this service only. No script but the given one. */
export const pagePolicy = (script?: string): string =>
  [
    "default-src 'none'",
    `style-src ${hashOf(STYLE)}`,
    ...(script === undefined ? [] : [`script-src ${hashOf(script)}`, "connect-src 'self'"]),
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ')

export const htmlPage = (title: string, content: string) => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><title>${escaped(title)}</title><style>${STYLE}</style></head>
<body>${content}</body></html>`
