const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** The text as HTML, in an element or in an attribute between quotes. */
export const escaped = (text: string) => text.replace(/[&<>"']/g, (character) => ENTITIES[character]!)
