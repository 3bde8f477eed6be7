import { createInterface } from 'node:readline'
import { forwardLines } from '../stdio/forward.ts'

/**
 * `npm run --silent mcp -- --url=https://agx.example.com`: the tools of a running agx for MCP clients that start a
 * process. The key comes from AGX_KEY, since every user of a machine sees the arguments of its processes.
 */
const USAGE = `usage: AGX_KEY=agx_… npm run --silent mcp -- --url=<URL of agx>
The key is one of the organization; see /docs/agents.`

const [argument, ...others] = process.argv.slice(2)
const url = /^--url=(https?:\/\/.+)$/.exec(argument ?? '')?.[1]
const key = process.env.AGX_KEY
if (!url || !URL.canParse(url) || !key || others.length > 0) {
  process.stderr.write(`${USAGE}\n`)
  process.exit(1)
}
const lines = createInterface({ input: process.stdin, crlfDelay: Infinity })
await forwardLines(lines, (line) => process.stdout.write(`${line}\n`), {
  url: new URL('/mcp', url).href,
  key: key.trim(),
})
