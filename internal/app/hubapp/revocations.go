package hubapp

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/cinnabar-hub/cinnabar/internal/app/authzapp"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/clientassertion"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/revocation"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// revocations are the lists of what issuers have revoked, by issuer. An issuer without a list revokes nothing: its tokens last until
// they expire. It is safe for concurrent use.
type revocations struct {
	mu    sync.RWMutex
	lists map[string][]*revocation.List
}

// add has the tokens of issuers judged by one more list.
func (r *revocations) add(list *revocation.List, issuers []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lists == nil {
		r.lists = map[string][]*revocation.List{}
	}
	for _, issuer := range issuers {
		r.lists[issuer] = append(slices.Clone(r.lists[issuer]), list) // readers have the old one
	}
}

// remove has the tokens of issuers judged by a list no more, and tells whether others still judge them.
func (r *revocations) remove(list *revocation.List, issuers []string) (others bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, issuer := range issuers {
		left := slices.DeleteFunc(slices.Clone(r.lists[issuer]), func(l *revocation.List) bool { return l == list })
		others = others || len(left) > 0
		if r.lists[issuer] = left; len(left) == 0 {
			delete(r.lists, issuer)
		}
	}
	return others
}

func (r *revocations) revoked(t revocation.Token) bool {
	r.mu.RLock()
	lists := r.lists[t.Issuer]
	r.mu.RUnlock()
	for _, list := range lists {
		if list.Revoked(t) {
			return true
		}
	}
	return false
}

// Revoked implements token.Revocations.
func (r *revocations) Revoked(c *token.Claims) bool { return r.revoked(authzapp.TokenOf(c)) }

// revokedPrincipal judges the reader of a stream.
func (r *revocations) revokedPrincipal(p *hub.Principal) bool { return r.revoked(tokenOf(p)) }

func tokenOf(p *hub.Principal) revocation.Token {
	return revocation.Token{
		Issuer: p.Issuer, ID: p.TokenID, GrantID: p.GrantID, SessionID: p.SessionID, Subject: p.Subject, ClientID: p.ClientID, IssuedAt: p.IssuedAt,
	}
}

// FollowStore has the tokens of issuers judged by the revocation log of their store in the same process. It is as Follow.
func (e *Engine) FollowStore(ctx context.Context, s store.Journal, issuers ...string) (*revocation.List, error) {
	list, _, err := e.Follow(ctx, Following{Source: authzapp.RevocationLog(s), Issuers: issuers})
	return list, err
}

// remote is an authorization server elsewhere whose revocations the hub follows.
type remote struct {
	issuer   string
	print    string // of the credentials
	asserter *clientassertion.Asserter
}

// followed is a remote that is being followed.
type followed struct {
	print string
	stop  func()
}

// remotes reads the credentials with which revocations are asked for: those of the issuer, else the session broker's, if it uses
// the issuer.
func remotes(c config.Hub) ([]remote, error) {
	var out []remote
	for _, is := range c.Issuers {
		id, file := is.Revocations.ClientID, is.Revocations.ClientKeyFile
		if id == "" && c.Session.Issuer == is.ID {
			id, file = c.Session.ClientID, c.Session.ClientKeyFile
		}
		if id == "" || !is.AuthorizationServer {
			continue
		}
		key, err := os.ReadFile(string(file))
		if err != nil {
			return nil, fmt.Errorf("issuer %s: revocations: read client key: %w", is.ID, err)
		}
		asserter, err := clientassertion.New(id, is.ID, key)
		if err != nil {
			return nil, fmt.Errorf("issuer %s: revocations: %w", is.ID, err)
		}
		sum := sha256.Sum256(append([]byte(id+"\x00"), key...))
		out = append(out, remote{issuer: is.ID, print: string(sum[:]), asserter: asserter})
	}
	return out, nil
}

// followRemotes follows the revocations of the authorization servers elsewhere that are not followed with these credentials yet, beside
// what is followed now, and returns what is to be followed from here on. One that cannot be reached at first may start after this hub,
// and its keys cannot be had before either; but credentials that are to take the place of others must work.
func (a *App) followRemotes(ctx context.Context, list []remote) (_ map[string]followed, err error) {
	next := map[string]followed{}
	defer func() {
		if err != nil {
			stopOthers(next, a.followed)
		}
	}()
	for _, r := range list {
		old, known := a.followed[r.issuer]
		if known && old.print == r.print {
			next[r.issuer] = old
			continue
		}
		source, err := revocation.NewRemote(revocation.RemoteOptions{Issuer: r.issuer, Client: r.asserter})
		if err != nil {
			return nil, fmt.Errorf("issuer %s: %w", r.issuer, err)
		}
		_, stop, err := a.engine.Follow(ctx, Following{
			Source: source, Issuers: []string{r.issuer}, Every: revocation.DefaultRemoteEvery, Patient: !known,
		})
		if err != nil {
			return nil, fmt.Errorf("issuer %s: %w", r.issuer, err)
		}
		next[r.issuer] = followed{print: r.print, stop: stop}
	}
	return next, nil
}

// stopOthers stops those that are not among the ones that stay.
func stopOthers(those, stay map[string]followed) {
	for issuer, f := range those {
		if stay[issuer].print != f.print {
			f.stop()
		}
	}
}
