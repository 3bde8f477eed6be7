/** The longest text of a cell in Excel. */
const LONGEST = 32_767

/** What a cell of a workbook has of a text. XML allows neither control characters nor half of a surrogate pair. */
export const cellText = (text: string): string =>
  text
    .slice(0, LONGEST)
    .replace(/\p{Surrogate}$/u, '')
    .replace(/[^\P{Cc}\t\n\r]|[\ufffe\uffff]|\p{Surrogate}/gu, '\ufffd')

/** Whether `text` is what a cell had of a longer text, as a spreadsheet program saves it and an import reads it. */
export const isCutOf = (text: string, longer: string): boolean =>
  longer.length > LONGEST && asRead(text) === asRead(cellText(longer))

/** A spreadsheet program may write other ends of lines, and an import trims. */
const asRead = (text: string) => text.replace(/\r\n?/g, '\n').trim()
