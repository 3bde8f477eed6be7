/**
 * Words that ask, in English, German, French, Spanish, Italian, Portuguese, Dutch and Polish, without accents.
 * Prepositions that are part of a name ("nom de famille") or give the question another subject ("name of your dog") are
 * not among them.
 */
const ASKING = new Set(
  [
    'a an and are at best can could did do enter for give how i in is me our please provide reach s tell the to type us we what whats where which who work working you your',
    'an arbeiten arbeitest bei bitte das dein deine der die du erreichen fur geben heissen ihr ihre ihren ist konnen lautet sie unter was welche welcher welches wer wie wir wo',
    'entrer est indiquer indiquez l la le les quel quelle quelles quels saisir saisissez son sont ta tes ton veuillez vos votre vous',
    'cual cuales el en es escribe introduce las los por favor su sus tu tus',
    'e gli i il inserisci lo qual quale sono sua suo tua tuo tuoi',
    'as o os seu sua teu',
    'het je jouw uw voer vul wat welk',
    'jak jaka jaki jakie jest masz na podaj prosze swoj swoja swoje twoj twoja twoje',
  ].flatMap((words) => words.split(' ')),
)

/** A longer text is no question for one field. */
const MAX_WORDS = 12

/**
 * What a question asks for, normalised as names of fields are: `What's your first name?` → `firstname`. Remarks in
 * brackets do not count. Undefined for a text that holds no words that ask: it is a name itself.
 */
export function subjectOf(label: string): string | undefined {
  const words =
    label
      .replace(/\([^()]*\)|\[[^[\]]*\]/g, ' ')
      .normalize('NFKD')
      .replace(/\p{Mark}/gu, '')
      .toLowerCase()
      .replace(/\be[- ]mail/g, 'email')
      .match(/[\p{Letter}\p{Number}]+/gu) ?? []
  if (words.length > MAX_WORDS) return undefined
  const named = words.filter((word) => !ASKING.has(word))
  return named.length === 0 || named.length === words.length ? undefined : named.join('')
}
