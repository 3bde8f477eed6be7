/** Tasks of the pool's test, well-behaved and otherwise. */
export const tasks = {
  add: (a: number, b: number) => a + b,
  fail() {
    throw new TypeError('no such thing')
  },
  loop() {
    for (;;);
  },
  async sleep(milliseconds: number) {
    await new Promise((resolve) => setTimeout(resolve, milliseconds))
    return milliseconds
  },
  fill() {
    const all: object[] = []
    for (;;) all.push({ one: all.length, more: [all.length] })
  },
}
