import assert from 'node:assert/strict'
import { ifMatch } from '../../../api/http/if-match.ts'
import { AppError } from '../../../db/errors.ts'

describe('If-Match', () => {
  const read = (header?: string) => ifMatch(header === undefined ? {} : { 'if-match': header })

  it('is any version where it is absent or *', () => {
    assert.equal(read(), undefined)
    assert.equal(read(' * '), undefined)
  })

  it('is one version or several, weakened ones too', () => {
    assert.deepEqual(read('"3"'), [3])
    assert.deepEqual(read('"3", W/"12" ,"abc"'), [3, 12])
  })

  it('is refused where no version can be read', () => {
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
