import assert from 'node:assert/strict'
import { linesOf } from '../load/account.ts'
import { endure, type Subject, startSubject, stopSubject } from './endure.ts'
import { FAULTS } from './faults.ts'

/** The short form of `npm run chaos`, which has all faults. */
const SHORT = ['worker-in-recording', 'postgres']

describe('acknowledged requests', function () {
  this.timeout(400_000)
  let subject: Subject

  before(async () => {
    subject = await startSubject()
  })
  after(() => subject && stopSubject(subject))

  for (const fault of FAULTS.filter(({ name }) => SHORT.includes(name)))
    it(`are all accounted for if ${fault.title}`, async () => {
      const outcome = await endure(fault, subject, { beforeMs: 1_500, afterMs: 500 })
      assert.ok(outcome.complete, `\n${linesOf(outcome.accounted).join('\n')}`)
    })
})
