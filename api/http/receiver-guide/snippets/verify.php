<?php
/** Returns the event; throws if the request is not genuine or is old. $body: file_get_contents('php://input'). */
function verify(string $secret, array $headers, string $body): array
{
    $timestamp = $headers['webhook-timestamp'];
    if (abs(time() - (int) $timestamp) > 300) {
        throw new Exception('the request is old');
    }
    $key = base64_decode(preg_replace('/^whsec_/', '', $secret));
    $content = "{$headers['webhook-id']}.$timestamp.$body";
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', $content, $key, true));
    // Several while the secret is rotated.
    foreach (explode(' ', $headers['webhook-signature']) as $given) {
        if (hash_equals($expected, $given)) {
            return json_decode($body, true, 512, JSON_THROW_ON_ERROR);
        }
    }
    throw new Exception('the signature is wrong');
}
