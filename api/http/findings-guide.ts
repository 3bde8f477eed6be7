import { CODES, type CodeEntry } from '../../workflows/language/finding-codes.ts'
import { escaped } from '../../workflows/shared/escape-html.ts'
import { guidePage } from './guide-page.ts'

const INTRODUCTION = `<p><code>POST /v1/workflows/validate</code> and every save of a workflow report findings. Each has one of
these codes, which do not change. An error refuses the workflow, a warning does not. Apply all hints, then validate again.</p>`

/** The page that explains each finding code. Its anchors are the codes. */
export function findingsGuide(): string {
  const entries = Object.entries<CodeEntry>(CODES)
  const sections = (['error', 'warning'] as const).map(
    (severity) =>
      `<h2>${severity === 'error' ? 'Errors' : 'Warnings'}</h2>\n${entries
        .filter(([, entry]) => entry.severity === severity)
        .map(([code, entry]) => section(code, entry))
        .join('\n')}`,
  )
  return guidePage({
    path: '/docs/findings',
    title: 'Findings of a validation',
    body: `${INTRODUCTION}\n${sections.join('\n')}`,
  })
}

function section(code: string, { meaning, mend, example }: CodeEntry): string {
  const shown = example
    ? `\n<pre><code>${escaped(example.wrong.trimEnd())}</code></pre>\n<p>Mended:</p>\n<pre><code>${escaped(example.right.trimEnd())}</code></pre>`
    : ''
  return `<h3 id="${code}"><a href="#${code}"><code>${code}</code></a></h3>\n<p>${prose(meaning)}</p>\n<p><b>Mend it:</b> ${prose(mend)}</p>${shown}`
}

const prose = (text: string) => escaped(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>')
