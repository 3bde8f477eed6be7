from standardwebhooks.webhooks import Webhook


def verify(secret, headers, body):
    """Returns the event; raises WebhookVerificationError if the request is not genuine or is old."""
    return Webhook(secret).verify(body, headers)
