package main

import (
	"net/http"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Verify returns an error if the request is not genuine or is old. body: the bytes as received.
func Verify(secret string, header http.Header, body []byte) error {
	webhook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	return webhook.Verify(body, header)
}
