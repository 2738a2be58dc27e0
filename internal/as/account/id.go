package account

import (
	"crypto/rand"
	"strings"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// NewID returns a new account id: store.AccountIDPrefix and 26 random characters (a-z, 2-7) that carry 130 bits. It needs no escaping
// in URLs, topics and claims, and says nothing about the person.
func NewID() string {
	return store.AccountIDPrefix + strings.ToLower(rand.Text())
}
