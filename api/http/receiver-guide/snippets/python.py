import base64, hashlib, hmac, json, time


def verify(secret, headers, body):
    """Returns the event; raises ValueError if the request is not genuine or is old. body: the bytes as received."""
    timestamp = headers["webhook-timestamp"]
    if abs(time.time() - int(timestamp)) > 300:
        raise ValueError("the request is old")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{headers['webhook-id']}.{timestamp}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest())
    # Several while the secret is rotated.
    given = headers["webhook-signature"].encode().split(b" ")
    if not any(hmac.compare_digest(one, expected) for one in given):
        raise ValueError("the signature is wrong")
    return json.loads(body)
