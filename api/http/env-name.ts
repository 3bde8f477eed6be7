/** A name of a secret or of an environment variable (`env`): an identifier that can follow a dot in a placeholder. */
export const ENV_NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/
export const ENV_NAME_RULE = 'must be a letter, then at most 63 letters, digits and _'
