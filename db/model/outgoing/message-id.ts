/** The `webhook-id` of all attempts and resends of an event to an endpoint. */
export const messageId = (eventId: string, webhookId: string): string => `msg_${eventId}_${webhookId}`
