package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Verify returns an error if the request is not genuine or is old. header: r.Header.Get; body: the bytes as received.
func Verify(secret string, header func(string) string, body []byte) error {
	timestamp := header("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return errors.New("the request is old")
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(header("webhook-id") + "." + timestamp + "."))
	mac.Write(body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	// Several while the secret is rotated.
	for _, given := range strings.Split(header("webhook-signature"), " ") {
		if hmac.Equal([]byte(given), []byte(expected)) {
			return nil
		}
	}
	return errors.New("the signature is wrong")
}
