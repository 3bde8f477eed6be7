import assert from 'node:assert/strict'
import { ifMatch } from '../../../api/http/if-match.ts'
import { AppError } from '../../../db/model/errors.ts'

describe('If-Match', () => {
  const read = (header?: string) => ifMatch(header === undefined ? {} : { 'if-match': header })

  it('accepts any version if it is absent or *', () => {
    assert.equal(read(), undefined)
    assert.equal(read(' * '), undefined)
  })

  it('accepts one or several versions, also as weak tags', () => {
    assert.deepEqual(read('"3"'), [3])
    assert.deepEqual(read('"3", W/"12" ,"abc"'), [3, 12])
  })

  it('is refused if no tag is a version', () => {
    for (const header of ['', '3', '"abc"', '"-1"', '"1.5"', '"99999999999"', '"3'])
      assert.throws(
        () => read(header),
        (error) =>
          error instanceof AppError &&
          error.type === 'version_conflict' &&
          /quotes/.test(error.details.hint!),
        header,
      )
  })
})
