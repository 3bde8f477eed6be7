<?php
/** Returns the event; throws if the request is not genuine or is old. $body: file_get_contents('php://input'). */
function verify(string $secret, array $headers, string $body): array
{
    return (new \StandardWebhooks\Webhook($secret))->verify($body, $headers);
}
