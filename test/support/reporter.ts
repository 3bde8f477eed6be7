import { relative } from 'node:path'
import Mocha from 'mocha'

const { EVENT_HOOK_END, EVENT_RUN_END, EVENT_SUITE_BEGIN, EVENT_TEST_END, EVENT_TEST_FAIL } =
  Mocha.Runner.constants

/**
 * Mocha's reporter `spec`, which also prints a failure's message at once, and after each test file its duration: the sum
 * of its tests and hooks.
 */
export default class FileReporter extends Mocha.reporters.Spec {
  private file: string | undefined
  private tests = 0
  private milliseconds = 0
  private files = 0

  constructor(runner: Mocha.Runner, options?: Mocha.MochaOptions) {
    super(runner, options)
    runner.on(EVENT_HOOK_END, (hook) => this.add(hook))
    runner.on(EVENT_TEST_END, (test) => {
      this.add(test)
      this.tests++
    })
    runner.on(EVENT_TEST_FAIL, (_test, error: Error) => process.stdout.write(`${indent(error.message)}\n`))
    // A worker process has a root suite for each file; without workers there is one, and its suites name their files.
    runner.prependListener(EVENT_SUITE_BEGIN, (suite) => {
      if (suite.root || (suite.file && suite.file !== this.file)) this.print()
    })
    runner.prependListener(EVENT_RUN_END, () => this.print())
  }

  private add({ file, duration = 0 }: Mocha.Runnable): void {
    this.file = file ?? this.file
    this.milliseconds += duration
  }

  private print(): void {
    if (this.file === undefined) return
    this.files++
    const path = relative(process.cwd(), this.file)
    const seconds = (this.milliseconds / 1000).toFixed(1)
    process.stdout.write(`\n  ${this.files}. ${path}: ${this.tests} tests in ${seconds} s\n`)
    this.file = undefined
    this.tests = 0
    this.milliseconds = 0
  }
}

const indent = (text: string): string => text.replace(/^/gm, '        ')
