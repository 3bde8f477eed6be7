import assert from 'node:assert/strict'
import { limitOf, PLAN_LIMITS, type PlanLimits } from '../../../db/access/plans.ts'

describe('plans', () => {
  it('have the limits of the interface contract', () => {
    const promised = (plan: keyof typeof PLAN_LIMITS): Partial<PlanLimits> => {
      const {
        max_running: _,
        storage_bytes: __,
        run_bytes: ___,
        retention_days: ____,
        ...rest
      } = PLAN_LIMITS[plan]
      return rest
    }
    const rows = Object.entries({ free: promised('free'), professional: promised('professional') })
    assert.deepEqual(
      rows.map(([plan, limits]) => [plan, ...Object.values(limits)]),
      [
        ['free', 3, 500, 60, 5, 1_000, 240, 120],
        ['professional', 10, 5_000, 120, 25, 10_000, 1_200, 600],
      ],
    )
    const {
      requests_per_minute,
      requests_per_minute_per_key,
      max_running,
      run_bytes,
      retention_days,
      ...unlimited
    } = PLAN_LIMITS.enterprise
    assert.ok(run_bytes > 0 && retention_days > 0)
    assert.deepEqual([requests_per_minute, requests_per_minute_per_key], [12_000, 6_000])
    assert.ok(max_running > 0)
    assert.deepEqual(new Set(Object.values(unlimited)), new Set([Number.POSITIVE_INFINITY]))
  })

  it('are overridden by the limits of an organization, including zero', () => {
    const subscription = { plan: 'free', limits: { outgoing_per_month: 0, incoming_per_month: 7 } } as const
    assert.equal(limitOf(subscription, 'outgoing_per_month'), 0)
    assert.equal(limitOf(subscription, 'incoming_per_month'), 7)
    assert.equal(limitOf(subscription, 'incoming_webhooks'), 3)
  })
})
