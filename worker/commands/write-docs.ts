import { readFileSync, writeFileSync } from 'node:fs'
import { withVariableTables } from '../dev/variable-tables.ts'

/** `npm run docs`: writes the tables of docs/configuration.md again, after a change of a variable. */
const page = new URL('../../docs/configuration.md', import.meta.url)
writeFileSync(page, withVariableTables(readFileSync(page, 'utf8')))
