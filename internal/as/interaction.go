package as

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// ParamInteraction is the parameter that names an interaction in the URLs of its steps.
const ParamInteraction = "interaction"

func encodeAuthorization(a authorization) (json.RawMessage, error) {
	encoded, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return encoded, nil
}

// interaction loads an interaction of this browser. One that another browser began is refused: somebody may have begun it to
// have it finished by a person who is signed in.
func (s *Server) interaction(ctx context.Context, id string, browser Browser) (pending, error) {
	if !isSecret(id) {
		return pending{}, ErrInteraction
	}
	stored, err := s.store.Interaction(ctx, hashSecret(id))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return pending{}, ErrInteraction
	case err != nil:
		return pending{}, fmt.Errorf("read interaction: %w", err)
	case stored.Issuer != s.options.Issuer:
		return pending{}, ErrInteraction
	case browser.Binding == "" || !sameText(stored.BindingHash, hashSecret(browser.Binding)):
		return pending{}, ErrForeignBrowser
	}
	p := pending{id: id, stored: &stored, browser: browser}
	if err := json.Unmarshal(stored.Request, &p.request); err != nil {
		return pending{}, fmt.Errorf("decode request: %w", err)
	}
	if p.client, err = s.client(ctx, stored.ClientID); err != nil {
		return pending{}, err
	}
	var ok bool // the redirect URI may have been taken from the client since
	if _, p.request.RegisteredURI, ok = matchRedirect(p.request.RedirectURI, p.client.RedirectURIs); !ok {
		return pending{}, ErrRedirectURI
	}
	return p, nil
}

// save stores what a step found out.
func (s *Server) save(ctx context.Context, p pending) error {
	encoded, err := encodeAuthorization(p.request)
	if err != nil {
		return err
	}
	p.stored.Request = encoded
	err = s.store.UpdateInteraction(ctx, *p.stored)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return ErrInteraction
	case err != nil:
		return fmt.Errorf("update interaction: %w", err)
	}
	return nil
}

// formToken authenticates the forms of an interaction: it proves that this server made the form, for this browser.
func (s *Server) formToken(p pending) string {
	return s.mac("form", p.id, p.browser.Binding)
}

// postedTo loads the interaction for a form that was posted.
func (s *Server) postedTo(ctx context.Context, id string, browser Browser, token string) (pending, error) {
	p, err := s.interaction(ctx, id, browser)
	if err != nil {
		return pending{}, err
	}
	if !sameText(token, s.formToken(p)) {
		return pending{}, ErrFormToken
	}
	return p, nil
}
