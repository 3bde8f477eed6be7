import assert from 'node:assert/strict'
import { limitOf, PLAN_LIMITS } from '../../../db/access/plans.ts'

/** The limits that the contract names, and those of requests. */
const SOLD = [
  'incoming_webhooks',
  'incoming_per_month',
  'incoming_per_minute',
  'outgoing_webhooks',
  'outgoing_per_month',
  'requests_per_minute',
  'requests_per_minute_per_key',
] as const

describe('plans', () => {
  it('have the limits of the interface contract', () => {
    const promised = (plan: keyof typeof PLAN_LIMITS) => SOLD.map((name) => PLAN_LIMITS[plan][name])
    assert.deepEqual(promised('free'), [3, 500, 60, 5, 1_000, 240, 120])
    assert.deepEqual(promised('professional'), [10, 5_000, 120, 25, 10_000, 1_200, 600])
    assert.deepEqual(promised('enterprise'), [...Array(5).fill(Number.POSITIVE_INFINITY), 12_000, 6_000])
  })

  it('are overridden by the limits of an organization, including zero', () => {
    const subscription = { plan: 'free', limits: { outgoing_per_month: 0, incoming_per_month: 7 } } as const
    assert.equal(limitOf(subscription, 'outgoing_per_month'), 0)
    assert.equal(limitOf(subscription, 'incoming_per_month'), 7)
    assert.equal(limitOf(subscription, 'incoming_webhooks'), 3)
  })
})
