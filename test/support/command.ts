import { type ParseArgsConfig, parseArgs } from 'node:util'

/**
 * The options and names of a command such as `npm run chaos`. `--help` prints `usage`; what the command does not know
 * ends it with that and the exit code 2.
 */
export function optionsOf<Config extends ParseArgsConfig>(usage: string, config: Config) {
  const options = { ...config.options, help: { type: 'boolean', short: 'h' } } as Config['options']
  const end = (code: number, text: string) => {
    process.stdout.write(`${text}\n`)
    return process.exit(code)
  }
  try {
    const parsed = parseArgs<Config>({ ...config, options })
    if ((parsed.values as { help?: boolean }).help) end(0, usage)
    return parsed
  } catch (error) {
    return end(2, `${(error as Error).message}\n\n${usage}`)
  }
}

/** The parts that `--only=` names, or all; an unknown name ends the command with those that there are. */
export function chosenOf<Part extends { name: string }>(parts: readonly Part[], only: string | undefined) {
  const names = only?.split(',') ?? parts.map(({ name }) => name)
  return names.map((name) => {
    const part = parts.find((one) => one.name === name)
    if (part) return part
    process.stdout.write(`there is no ${name}; there are ${parts.map((one) => one.name).join(', ')}\n`)
    return process.exit(2)
  })
}
