/**
 * Splits a full name without losing words. A single word is the first name. Particles belong to the last name. Titles
 * belong to the first name, because contacts have no field for them.
 */
export function splitName(full: string): { first_name?: string; last_name?: string } {
  const text = full.trim().replace(/\s+/g, ' ')
  const comma = /^([^,]+), *([^,]+)$/.exec(text)
  if (comma && !SUFFIX.test(comma[2]!)) return { first_name: comma[2]!.trim(), last_name: comma[1]!.trim() }
  const words = text.replace(/,/g, '').split(' ').filter(Boolean)
  if (words.length === 0) return {}
  if (words.length === 1) return { first_name: words[0]! }
  const particle = words.findIndex(
    (word, index) => index > 0 && index < words.length - 1 && PARTICLE.test(word),
  )
  const suffixes = words.filter((word, index) => index > 1 && SUFFIX.test(word)).length
  const cut = particle > 0 ? particle : words.length - 1 - Math.min(suffixes, words.length - 2)
  return { first_name: words.slice(0, cut).join(' '), last_name: words.slice(cut).join(' ') }
}

const SUFFIX = /^(jr|sr|ii|iii|iv|phd|md|esq)\.?$/i
const PARTICLE = /^(van|von|der|den|de|da|do|dos|das|del|della|di|du|la|le|ter|ten|bin|ibn|al|el|zu|zur)$/i
