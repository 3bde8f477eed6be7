import { normalise } from '../records/synonyms.ts'

interface Control {
  hint: string
  /** The parameters that the hint names, all of which a list must have. */
  names: readonly string[]
  /** Names that other APIs give it, normalised. */
  others: readonly string[]
}

const control = (hint: string, names: string, others: string): Control => ({
  hint,
  names: names.split(' '),
  others: others.split(' '),
})

/** The parameters of lists. */
const CONTROLS: readonly Control[] = [
  control('limit', 'limit', 'perpage pagesize pagelimit maxresults top'),
  control(
    'offset, or cursor with the next_cursor of the page before',
    'offset cursor',
    'page pagenumber skip start',
  ),
  control('cursor', 'cursor', 'after startingafter pagetoken nextcursor nextpage'),
  control('q', 'q', 'search query keyword text'),
  control('search', 'search', 'q query keyword text'),
  control('sort and order', 'sort order', 'orderby sortby ordering sortorder direction sortdirection'),
  control('order', 'order', 'ordering sortorder direction sortdirection'),
  control('fields', 'fields', 'select properties columns'),
]

/** The parameter that a name of other APIs means, among those that a list `has`. */
export function controlMeant(written: string, has: (name: string) => boolean): string | undefined {
  const name = normalise(written)
  return CONTROLS.find(({ names, others }) => others.includes(name) && names.every(has))?.hint
}
