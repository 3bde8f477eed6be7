/** Holds calls from outside, such as segments. */
export interface Hold<Input> {
  /** Resolves with the first call that is held. */
  reached: Promise<void>
  release(): void
  /** Waits for the release if the call matches. */
  pass(input: Input): Promise<void>
}

/** Holds the calls for which `matches`, until `release`. */
export function holdFor<Input>(matches: (input: Input) => boolean): Hold<Input> {
  let reach = () => {}
  let release = () => {}
  const reached = new Promise<void>((resolve) => {
    reach = resolve
  })
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  return {
    reached,
    release: () => release(),
    async pass(input) {
      if (!matches(input)) return
      reach()
      await released
    },
  }
}
