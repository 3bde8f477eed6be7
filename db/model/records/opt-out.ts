/** How other systems write that a person must not be contacted: names of fields, normalised, and their values. */

const names = (text: string) => new Set(text.split(/\s+/))

/** Names of a yes or no. */
export const OPT_OUT_NAMES = names(
  `donotcontact unsubscribed isunsubscribed hasunsubscribed unsubscribedfromemails unsubscribedfromall
   optout optedout isoptedout emailoptout emailoptedout hasoptedout hasoptedoutofemail hsemailoptout smsoptout
   donotemail donotcall dnc blacklisted emailblacklisted marketingoptout`,
)
/** The same as a time. */
export const OPT_OUT_TIMES = names('unsubscribedat optoutat optedoutat unsubscribedate optoutdate')

/** Columns of exports, among them `Opted out of email: Newsletter` and `Unsubscribed from all email`. */
const OUT_COLUMN =
  /^(is|has|email|sms|marketing)*(unsubscribed?|opt(ed)?out)(on|at|date|time|(from|of)(all)?(e?mails?|sms|fax|marketing)?.*)?$/
const NOT_COLUMN = /^(do)?not?(contact|e?mail|call|sms|text|market|solicit)(ing)?$/
const OTHER_COLUMNS = names(
  `hasoptedoutoffax marketingstatus emailmarketingstatus subscriptionstatus emailsubscriptionstatus
   abgemeldet abgemeldetam abmeldung nichtkontaktieren kontaktsperre werbesperre werbewiderspruch mailsperre emailsperre
   desabonne desinscrit nepascontacter nocontactar dadodebaja cancelosuscripcion disiscritto noncontattare
   descadastrado naocontatar naocontactar uitgeschreven afgemeld nietcontacteren wypisany niekontaktowac`,
)
const IN_COLUMN =
  /^(is|has|email|sms|marketing)*(subscribed|opt(ed)?in|consent|permission)(status|(to|for)(all)?(e?mails?|sms|marketing)?.*)?$/
const IN_COLUMNS = names(
  `acceptsmarketing acceptsemailmarketing acceptssmsmarketing agreedtomarketing canbecontacted maycontact
   einwilligung werbeeinwilligung werbeerlaubnis kontakterlaubnis consentement consentimiento consenso toestemming zgoda`,
)

/** Whether a yes in the column means that the person must not be contacted (`out`), or may be (`in`). */
export function consentColumn(name: string): 'out' | 'in' | undefined {
  if (OPT_OUT_NAMES.has(name) || OPT_OUT_TIMES.has(name) || OTHER_COLUMNS.has(name)) return 'out'
  if (OUT_COLUMN.test(name) || NOT_COLUMN.test(name)) return 'out'
  return IN_COLUMNS.has(name) || IN_COLUMN.test(name) ? 'in' : undefined
}

const OUT =
  /^(unsubscribed?|opt(ed)?[ -]?out|no consent|non[ -]subscribed|not subscribed|not opted[ -]in|cleaned|complained|spam|blocked|blacklisted|revoked|withdrawn|abgemeldet|widerrufen|désabonnée?|désinscrite?|uitgeschreven)$/
const IN =
  /^(subscribed?|opt(ed)?[ -]?in|double opt[ -]?in|granted|given|confirmed|angemeldet|abonnée?|archived|pending|unknown)$/

/**
 * Reads the status of a subscription, or the date of an opt-out. @returns whether it says that the person opted out;
 * undefined for any other text.
 */
export function readConsent(text: string): boolean | undefined {
  const status = text.toLowerCase().replaceAll('_', ' ').trim()
  if (OUT.test(status)) return true
  return IN.test(status) ? false : undefined
}
