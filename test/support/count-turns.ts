/** Counts the turns of the event loop while `work` runs. */
export async function countingTurns<T>(work: (turn: () => number) => Promise<T>): Promise<T> {
  let turns = 0
  let isOver = false
  const count = () => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  try {
    return await work(() => turns)
  } finally {
    isOver = true
  }
}
