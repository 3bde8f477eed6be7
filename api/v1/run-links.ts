import { z } from 'zod'
import type { ApiConfig } from '../config.ts'

export const runLinks = z
  .object({
    self: z.string().describe('The path of the run.'),
    temporal_ui: z.string().optional().describe('The run in the Temporal UI, if its address is configured.'),
  })
  .meta({ id: 'RunLinks' })

/** The links of a run: its path, and its page in the Temporal UI. */
export function linksOf(
  runId: string,
  { TEMPORAL_UI_URL, TEMPORAL_NAMESPACE }: Pick<ApiConfig, 'TEMPORAL_UI_URL' | 'TEMPORAL_NAMESPACE'>,
): { self: string; temporal_ui?: string } {
  const self = `/v1/runs/${runId}`
  if (!TEMPORAL_UI_URL) return { self }
  const base = TEMPORAL_UI_URL.replace(/\/$/, '')
  const workflow = encodeURIComponent(`run:${runId}`)
  return {
    self,
    temporal_ui: `${base}/namespaces/${encodeURIComponent(TEMPORAL_NAMESPACE)}/workflows/${workflow}`,
  }
}
