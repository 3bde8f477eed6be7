import type { DocumentFormat } from '../../../../workflows/shared/knowledge.ts'

/** The text of a file, as the body of a document, or why it has none that can be used. */
export type Extracted =
  | { body: string; format: DocumentFormat; title?: string | undefined }
  | { refused: string }
