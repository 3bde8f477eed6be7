import { readFile } from 'node:fs/promises'

/** A page of /docs that is written in Markdown. */
export interface MarkdownPage {
  /** Below the root of the project. */
  file: string
  path: string
  /** In the navigation. */
  title: string
}

/** Another page of /docs: this service makes it from its routes and tables. */
export interface MadePage {
  path: string
  title: string
}

const guide = (name: string, title: string): MarkdownPage => ({
  file: `docs/${name}.md`,
  path: `/docs/${name}`,
  title,
})

/** The navigation of /docs, in its order. To add a page: its file in docs/ and a line here. */
export const NAVIGATION: readonly { title: string; pages: readonly (MarkdownPage | MadePage)[] }[] = [
  {
    title: 'Use it',
    pages: [
      { file: 'README.md', path: '/docs/overview', title: 'Overview' },
      guide('records', 'Records'),
      guide('workflows', 'Workflows'),
      guide('expressions', 'Expressions'),
      guide('incoming-webhooks', 'Incoming webhooks'),
      guide('outgoing-webhooks', 'Outgoing webhooks'),
      guide('agents', 'Agents'),
      guide('people-and-keys', 'People and keys'),
      guide('knowledge-and-analytics', 'Knowledge and analytics'),
    ],
  },
  {
    title: 'Reference',
    pages: [
      { path: '/docs', title: 'API reference' },
      { path: '/docs/webhooks', title: 'Receiving webhooks' },
      guide('errors', 'Errors'),
      { path: '/docs/findings', title: 'Findings of a validation' },
    ],
  },
  {
    title: 'Run it',
    pages: [
      guide('deployment', 'Deployment'),
      guide('configuration', 'Configuration'),
      guide('operations', 'Operations'),
      guide('performance', 'Performance'),
      { file: 'SECURITY.md', path: '/docs/security', title: 'Security' },
    ],
  },
  {
    title: 'Change it',
    pages: [guide('architecture', 'Architecture'), guide('contributing', 'Contributing')],
  },
]

/** All pages that are written in Markdown. */
export const MARKDOWN_PAGES: readonly MarkdownPage[] = NAVIGATION.flatMap(({ pages }) =>
  pages.filter((page): page is MarkdownPage => 'file' in page),
)

const ROOT = new URL('../../../', import.meta.url)

export const readPage = ({ file }: MarkdownPage): Promise<string> => readFile(new URL(file, ROOT), 'utf8')
