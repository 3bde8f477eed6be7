import { Webhook } from 'standardwebhooks'

/** Returns the event; throws if the request is not genuine or is old. `body`: the text as received. */
export const verify = (secret, headers, body) => new Webhook(secret).verify(body, headers)
