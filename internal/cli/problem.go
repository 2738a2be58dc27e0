package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/cinnabar-hub/cinnabar/client"
)

// explain gives a failed request of package client its exit code, and a hint where there is one. Other errors stay as they are.
func explain(hub string, err error) error {
	failure, ok := errors.AsType[*client.Error](err)
	if !ok {
		return err
	}
	e := &Error{Code: ExitFailure, Hint: hintFor(failure), Err: err}
	switch failure.Status {
	case 0:
		if !failure.Uncertain {
			e.Err = fmt.Errorf("reach %s: %w", hub, failure.Err)
		}
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		e.Code = ExitRefused
	}
	return e
}

// hintFor says what to do about a failed request. What the hub advises comes first.
func hintFor(e *client.Error) string {
	if e.Hint != "" {
		return e.Hint
	}
	if e.Uncertain {
		return "the update may have been published all the same; with an --id of your own, readers recognise a repetition"
	}
	switch e.Status {
	case 0:
		if _, ok := errors.AsType[*tls.CertificateVerificationError](e); ok {
			return "for 'hub dev', give --data DIR, or --ca-file with its tls/ca.crt"
		}
	case http.StatusOK, http.StatusNotFound, http.StatusMethodNotAllowed:
		return "give the URL of the hub itself, such as https://hub.example.com/.well-known/mercure"
	case http.StatusUnauthorized:
		if e.Code != "" { // the hub names no error when there was no token (RFC 6750 section 3.1)
			return "see what is wrong with the token: authz token inspect"
		}
		return "give a token: --token-file, --token or CINNABAR_TOKEN; for 'hub dev', --data DIR"
	}
	return ""
}
