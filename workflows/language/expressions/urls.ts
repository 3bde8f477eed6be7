import type { Template } from './template.ts'

/** What a placeholder in the setting `url` must not make of the URL. Each function throws an error for the author. */

type Part = Template['parts'][number]

/** Empty, a whole segment makes another URL: `DELETE …/things/{{ inputs.id }}` would delete all things. */
export function requireSegment(before: string, written: string, after: Part | undefined): void {
  const isSegment =
    /:\/\/[^/?#]+\/([^?#]*\/)?$/.test(before) &&
    (after === undefined || (typeof after === 'string' && /^[/?#]/.test(after)))
  if (written === '' && isSegment)
    throw new Error(
      'is empty, and the URL without it is another one: test it by a `when` or a condition before, or give it a `default`',
    )
}

/**
 * A segment `..` of a value leads to another path of the host, also as `%2e%2e` and behind `url_encode`, which leaves
 * dots. What is written literally, and a placeholder that begins the URL, are
 * the author's. `beginning`: the first part as it is rendered; `rest`: the others.
 */
export function requireOwnPath(url: string, beginning: string, rest: readonly Part[]): void {
  const literal = rest.map((part) => (typeof part === 'string' ? part : 'x')).join('')
  if (dotSegments(url) > dotSegments(beginning + literal))
    throw new Error('a value is, or has, a segment `.` or `..`, which leads the URL to another path')
}

/** The segments of the path that a URL parser resolves. It drops tabs and line breaks, and takes `\\` for `/`. */
const dotSegments = (url: string): number =>
  url
    .replaceAll(/[\t\n\r]/g, '')
    .split(/[?#]/, 1)[0]!
    .split(/[/\\]/)
    .filter((segment) => /^(?:\.|%2e){1,2}$/i.test(segment)).length
