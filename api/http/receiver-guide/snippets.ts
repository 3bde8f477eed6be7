import { readFile } from 'node:fs/promises'

export interface Snippet {
  title: string
  /** The file's name in `snippets/`. */
  file: string
  /** The command that installs its library. Undefined if it needs none. */
  install?: string
}

/** The snippets on the page. `test/api/http/receiver-guide.test.ts` runs each one whose language is installed. */
export const SNIPPETS: Snippet[] = [
  { title: 'Node', file: 'node.mjs' },
  { title: 'Python', file: 'python.py' },
  { title: 'Go', file: 'verify.go' },
  { title: 'PHP', file: 'verify.php' },
  { title: 'Node, Standard Webhooks', file: 'library.mjs', install: 'npm install standardwebhooks' },
  { title: 'Python, Standard Webhooks', file: 'library.py', install: 'pip install standardwebhooks' },
  {
    title: 'Go, Standard Webhooks',
    file: 'library.go',
    install: 'go get github.com/standard-webhooks/standard-webhooks/libraries/go',
  },
  {
    title: 'PHP, Standard Webhooks',
    file: 'library.php',
    install: 'composer require standard-webhooks/standard-webhooks',
  },
]

export const pathOf = ({ file }: Snippet): URL => new URL(`./snippets/${file}`, import.meta.url)
export const textOf = (snippet: Snippet): Promise<string> => readFile(pathOf(snippet), 'utf8')
