import { readFileSync, writeFileSync } from 'node:fs'
import { withSettings } from '../dev/settings-tables.ts'

/** `npm run docs`: writes the tables of docs/configuration.md again, after a change of a setting. */
const page = new URL('../../docs/configuration.md', import.meta.url)
writeFileSync(page, withSettings(readFileSync(page, 'utf8')))
