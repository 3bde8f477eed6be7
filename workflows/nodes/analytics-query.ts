import { hasPlaceholder } from '../language/expressions/template.ts'
import { listOf, members, NULL, TEXT, typeOfSchema, unionOf } from '../language/value-types.ts'
import { analyticsQuery, analyticsResult } from '../shared/analytics.ts'
import { type ConfigProblem, defineNode } from './define.ts'
import { conditionsIn, leftOutConditions } from './left-out-conditions.ts'

export const analyticsQueryNode = defineNode({
  type: 'analytics_query',
  engine: 6,
  category: 'records',
  title: 'Query analytics',
  alsoCalled: ['analytics', 'metric', 'metrics', 'query_analytics', 'report', 'statistics', 'stats', 'kpi'],
  description:
    'Computes a metric, such as `deals.won_value`, one of those under Metrics. The output has `total`, the value of the period, and `rows`, one for each group and bucket: `{bucket, group, value}`. Deleted records are not counted.',
  effect: 'read',
  effects: ['analytics'],
  config: analyticsQuery,
  output: analyticsResult,
  outputType({ group_by = [] }) {
    const result = typeOfSchema(analyticsResult)
    const named = Array.isArray(group_by) && group_by.every((name) => !hasPlaceholder(String(name)))
    if (!named) return result
    const group = members(Object.fromEntries(group_by.map((name) => [String(name), unionOf([TEXT, NULL])])))
    const { rows } = result.properties!
    const row = { ...rows!.items, properties: { ...rows!.items!.properties, group } }
    return { ...result, properties: { ...result.properties, rows: listOf(row) } }
  },
  handles: () => [{ name: 'success', description: 'The metric is computed.' }],
  scopes: () => ['analytics:read'],
  check: (config, catalogue) => [
    ...catalogue
      .checkAnalytics(config, (value) => typeof value === 'string' && hasPlaceholder(value))
      .map(
        ({ path, message, isName, hint }): ConfigProblem => ({
          code: isName ? 'unknown_field' : 'invalid_value',
          message,
          path,
          ...(hint !== undefined && { hint }),
        }),
      ),
    ...leftOutConditions(conditionsIn('filter', config.filter)),
  ],
  example: {
    config: { metric: 'deals.won_value', group_by: ['owner_id'], last: '{{ inputs.period }}' },
    inputs: { inputs: { period: '7d' } },
    output: {
      metric: 'deals.won_value',
      unit: 'money',
      interval: null,
      group_by: ['owner_id'],
      from: '2026-01-24T09:30:00.000Z',
      to: '2026-01-31T09:30:00.000Z',
      time_zone: 'UTC',
      kept_since: null,
      rows: [
        {
          bucket: null,
          other: false,
          currency: 'EUR',
          value: '1250.00',
          group: { owner_id: '019a0000-0000-7000-8000-000000000001' },
        },
      ],
      total: '1250.00',
      totals: [{ currency: 'EUR', value: '1250.00' }],
      converted: { currency: 'EUR', value: '1250.00' },
    },
  },
  async run(config, { analytics }) {
    return { output: await analytics.query(config) }
  },
})
