import { startStack } from './support/stack.ts'
describe('scratch', function () {
  this.timeout(120000)
  for (let i = 0; i < 2; i++) it('stack', async () => {
      let t = performance.now()
      const s = await startStack()
      console.log('start', performance.now() - t); t = performance.now()
      await s.stop()
      console.log('stop', performance.now() - t); t = performance.now()
      const s2 = await startStack({ previous: s })
      console.log('start again', performance.now() - t); t = performance.now()
      await s2.stop()
      console.log('stop', performance.now() - t)
      if (i === 1) console.log(s.output())
  })
})
