import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The warnings and errors that the processes of a stack logged: an answer with 500, or a wait in vain, has no cause. */
export const problemsIn = (dataDir: string): string[] =>
  ['api', 'worker'].flatMap((name) =>
    readFileSync(join(dataDir, 'logs', `${name}.log`), 'utf8')
      .split('\n')
      .filter((line) => /"level":("warn|"error|40|50|60)/.test(line)),
  )
