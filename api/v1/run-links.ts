import type { ApiConfig } from '../config.ts'

/** Where to look at a run: here, and in the Temporal UI where its address is known. */
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
