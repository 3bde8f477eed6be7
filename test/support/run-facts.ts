import type { RunFacts } from '../../workflows/interpret/run-state.ts'

export const ID = '019a0000-0000-7000-8000-000000000001'

/** What a segment knows of a run that was just started by the API. */
export const runFacts: RunFacts = {
  run: {
    id: ID,
    kind: 'run',
    workflow_id: ID,
    workflow_version: 1,
    workflow_name: 'Test',
    status: 'running',
    trigger: { type: 'api' },
    inputs: {},
    node: null,
    temporal_run_id: null,
    created_at: '2026-01-01T00:00:00.000Z',
    started_at: null,
  },
  organization: { id: ID, name: 'Test', currency: 'USD', timezone: 'UTC' },
  env: {},
}
