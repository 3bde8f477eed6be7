/** Static pages of /docs, without scripts. */

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}
pre{background:#f4f4f5;padding:1rem;overflow:auto;font-size:14px}
@media(prefers-color-scheme:dark){body{background:#18181b;color:#e4e4e7}pre{background:#27272a}a{color:#93c5fd}}`

/** `title` is also the heading; `body` is HTML. */
export const guidePage = (title: string, body: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} - agx</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<p><a href="/docs">API reference</a></p>
<h1>${title}</h1>
${body}
</body>
</html>
`

export const GUIDE_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
