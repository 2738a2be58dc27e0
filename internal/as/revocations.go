package as

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// maxRevocations is how many entries one answer has at most, and how many it has when the request does not say.
const maxRevocations = 1000

// RevocationEntry is one entry of the revocation log. Times are Unix seconds, with milliseconds as decimals.
type RevocationEntry struct {
	Seq   int64  `json:"seq"`
	Kind  string `json:"kind"` // jti, grant, sid, sub or client
	Value string `json:"value"`
	// IssuedBefore is the newest iat that is revoked; after Until every such token has expired.
	IssuedBefore float64 `json:"issued_before"`
	Until        float64 `json:"until"`
}

// RevocationsPage is a part of the revocation log of this issuer, in order.
type RevocationsPage struct {
	Revocations []RevocationEntry `json:"revocations"`
	// Last is the number to ask from next. It can be greater than that of the last entry here: other issuers share the numbers.
	// With fewer entries than were asked for there are no more at this moment.
	Last int64 `json:"last"`
}

// Revocations returns what of this issuer was revoked after the entry "since", at most "limit" entries. Session brokers alone may
// ask: they close the streams of what is revoked. Every error is an *OAuthError.
func (s *Server) Revocations(ctx context.Context, r ClientRequest) (RevocationsPage, error) {
	client, p, err := s.readClientRequest(ctx, r)
	if err == nil {
		var page RevocationsPage
		if page, err = s.revocations(ctx, client, p); err == nil {
			return page, nil
		}
	}
	return RevocationsPage{}, s.clientError(ctx, PathRevocations, client.ID, err)
}

func (s *Server) revocations(ctx context.Context, client store.Client, p params) (RevocationsPage, error) {
	if !client.Broker {
		return RevocationsPage{}, refuse(CodeUnauthorizedClient, "Only the session broker of a hub may read the revocation log.")
	}
	since, err := wholeNumber(p, "since", 0, 0)
	if err != nil {
		return RevocationsPage{}, err
	}
	limit, err := wholeNumber(p, "limit", 1, maxRevocations)
	if err != nil {
		return RevocationsPage{}, err
	}
	page := RevocationsPage{Revocations: []RevocationEntry{}, Last: since}
	for {
		entries, err := s.store.RevocationsSince(ctx, page.Last, maxRevocations)
		if err != nil {
			return RevocationsPage{}, fmt.Errorf("read revocation log: %w", err)
		}
		for _, e := range entries {
			page.Last = e.Seq
			if e.Issuer != s.options.Issuer {
				continue
			}
			page.Revocations = append(page.Revocations, RevocationEntry{
				Seq: e.Seq, Kind: string(e.Kind), Value: e.Value, IssuedBefore: seconds(e.IssuedBefore), Until: seconds(e.Until),
			})
			if int64(len(page.Revocations)) == limit {
				return page, nil
			}
		}
		if len(entries) < maxRevocations {
			return page, nil
		}
	}
}

// wholeNumber reads a parameter that is a whole number; most 0 means no bound, and is what an absent parameter means otherwise.
func wholeNumber(p params, name string, least, most int64) (int64, error) {
	if !p.has(name) {
		return most, nil
	}
	n, err := strconv.ParseInt(p.get(name), 10, 64)
	if err != nil || n < least || (most > 0 && n > most) {
		bounds := fmt.Sprintf("%d or more", least)
		if most > 0 {
			bounds = fmt.Sprintf("from %d to %d", least, most)
		}
		return 0, refuse(CodeInvalidRequest, "The parameter "+name+" must be a whole number, "+bounds+".")
	}
	return n, nil
}

// seconds is a time in the way of a NumericDate (RFC 7519 section 2), in the store's resolution.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
