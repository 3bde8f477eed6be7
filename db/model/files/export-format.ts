/** How the file of an export is written. */
export interface ExportFormat {
  format: (typeof EXPORT_FORMATS)[number]
  /** Separates the cells of CSV. */
  delimiter: ',' | ';'
  /** The decimal separator of CSV. */
  decimal: '.' | ','
  /** Whether ids of users and records are followed by a column with their names. */
  names: boolean
}

export const EXPORT_FORMATS = ['csv', 'xlsx'] as const

export const PLAIN: ExportFormat = { format: 'csv', delimiter: ',', decimal: '.', names: false }

/** The separators that spreadsheets of a locale expect. */
export function separatorsOf(locale: string | null): Pick<ExportFormat, 'delimiter' | 'decimal'> {
  const hasComma = locale !== null && new Intl.NumberFormat(locale).format(1.5).includes(',')
  return hasComma ? { delimiter: ';', decimal: ',' } : { delimiter: ',', decimal: '.' }
}
