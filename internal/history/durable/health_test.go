package durable_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/durable"
)

var errBroken = errors.New("broken")

// The operator is told when commits begin to fail and when they succeed again, not of each.
func TestHealth_Report(t *testing.T) {
	var said bytes.Buffer
	h := durable.NewHealth("/the/folder", slog.New(slog.NewTextHandler(&said, nil)))
	for _, err := range []error{nil, errBroken, history.ErrNoSpace, nil, nil, errBroken, nil} {
		h.Report(err)
	}
	for text, want := range map[string]int{"history cannot store updates": 2, "history stores updates again": 2, "folder=/the/folder": 4} {
		if got := strings.Count(said.String(), text); got != want {
			t.Errorf("%q was said %d times, want %d:\n%s", text, got, want, said.String())
		}
	}
	if err := h.Err(); err != nil {
		t.Errorf("Err() = %v: the next commit may succeed", err)
	}
}

// A log that has become read-only says so once, whatever commits come after.
func TestHealth_Fail(t *testing.T) {
	var said bytes.Buffer
	h := durable.NewHealth("/the/folder", slog.New(slog.NewTextHandler(&said, nil)))
	err := h.Fail(errBroken)
	if !errors.Is(err, history.ErrReadOnly) || !errors.Is(err, errBroken) {
		t.Errorf("Fail() = %v, want ErrReadOnly and the cause", err)
	}
	h.Report(err)
	h.Report(h.Err())
	if got := h.Err(); !errors.Is(got, err) {
		t.Errorf("Err() = %v, want %v", got, err)
	}
	if lines := strings.Count(said.String(), "\n"); lines != 1 || !strings.Contains(said.String(), "read-only until it is reopened") {
		t.Errorf("%d lines, want one:\n%s", lines, said.String())
	}
}

func TestHealth_Refuse(t *testing.T) {
	h := durable.NewHealth("/the/folder", slog.New(slog.DiscardHandler))
	h.Refuse(errBroken)
	if err := h.Err(); !errors.Is(err, errBroken) || errors.Is(err, history.ErrReadOnly) {
		t.Errorf("Err() = %v, want the reason alone", err)
	}
}
