import assert from 'node:assert/strict'
import { coalesce } from '../../../api/http/coalesce.ts'

describe('questions that share a statement', () => {
  const asked: number[][] = []
  let answer = async (questions: number[]) =>
    new Map(questions.map((question) => [`${question}`, question * 10]))
  const ask = coalesce(String, (questions: number[]) => {
    asked.push(questions)
    return answer(questions)
  })
  beforeEach(() => asked.splice(0))

  it('are those of one turn, each asked once', async () => {
    assert.deepEqual(await Promise.all([ask(1), ask(2), ask(1)]), [10, 20, 10])
    assert.deepEqual(asked, [[1, 2]])
  })

  it('are those that come while another is under way; the same question is then asked anew', async () => {
    const first = ask(1)
    await new Promise((resolve) => setImmediate(resolve))
    let open = () => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const plain = answer
    answer = async (questions) => {
      await gate
      return plain(questions)
    }
    const second = ask(2)
    await new Promise((resolve) => setImmediate(resolve))
    const others = [ask(2), ask(3)]
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(asked, [[1], [2]])
    answer = plain
    open()
    assert.deepEqual(await Promise.all([first, second, ...others]), [10, 20, 20, 30])
    assert.deepEqual(asked, [[1], [2], [2, 3]])
  })

  it('get undefined where there is no answer, and the error of their own statement only', async () => {
    const plain = answer
    answer = async () => new Map()
    assert.equal(await ask(1), undefined)
    answer = () => Promise.reject(new Error('away'))
    await Promise.all([assert.rejects(ask(1), /away/), assert.rejects(ask(2), /away/)])
    answer = plain
    assert.equal(await ask(3), 30)
  })
})
