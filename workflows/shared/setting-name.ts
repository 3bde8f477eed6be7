/** Names of secrets and of settings (`env`): what a placeholder can write after a dot. */
export const SETTING_NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/
export const SETTING_NAME_RULE = 'must be a letter, then at most 63 letters, digits and _'
