import type { Bootstrapped } from '../../db/access/bootstrap.ts'

export interface BoxContents {
  apiUrl: string
  temporalUiUrl: string | undefined
  dataDir: string
  /** Secrets that this start created; shown only once. */
  created: Bootstrapped | undefined
}

/** The lines that `npm start` prints when it is ready. No frame at the sides, so that they can be copied. */
export function box({ apiUrl, temporalUiUrl, dataDir, created }: BoxContents): string {
  const line = '─'.repeat(78)
  const rows = [
    ['API', apiUrl],
    ['Console', `${apiUrl}/`],
    ['API reference', `${apiUrl}/docs`],
    ...(temporalUiUrl ? [['Temporal UI', temporalUiUrl]] : []),
    ...(created
      ? [
          ['Demo key', `${created.apiKey}  (shown once)`],
          ['Owner', `${created.email}, password ${created.password}  (shown once)`],
        ]
      : []),
    ['Data and logs', dataDir],
  ]
  const curl = created
    ? `curl -H "Authorization: Bearer ${created.apiKey}" ${apiUrl}/v1/me`
    : `curl ${apiUrl}/readyz`
  return [
    line,
    '  agx is ready. Ctrl-C stops it.',
    '',
    ...rows.map(([name, value]) => `  ${name!.padEnd(14)}${value}`),
    '',
    '  Try:',
    `  ${curl}`,
    line,
    '',
  ].join('\n')
}
