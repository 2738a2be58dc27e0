package durable

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// Health is whether a log can store what comes.
type Health struct {
	folder string
	logger *slog.Logger

	failing bool // the last commit failed in a way that the next one may not; belongs to the committer's goroutine

	// mu protects the field below.
	mu     sync.RWMutex
	failed error // why nothing can be stored any more
}

// NewHealth returns that of a log that can. The folder is what the operator is told with what happens; the logger must not be nil.
func NewHealth(folder string, logger *slog.Logger) *Health {
	return &Health{folder: folder, logger: logger}
}

// Err returns why nothing can be stored any more, or nil.
func (h *Health) Err() error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.failed
}

// Refuse makes err the reason why nothing can be stored, without telling anybody.
func (h *Health) Refuse(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = err
}

// Fail is for a failure after which nobody can tell what is on the disk: nothing can be stored until the log is opened again. It tells the
// operator, and returns the error that says so from now on: history.ErrReadOnly and the cause.
func (h *Health) Fail(cause error) error {
	err := fmt.Errorf("%w: %w", history.ErrReadOnly, cause)
	h.Refuse(err)
	h.logger.Error("history is read-only until it is reopened", slog.String("error", cause.Error()))
	return err
}

// Report takes the outcome of each commit and tells the operator when commits begin to fail, and when they succeed again; not of each of
// them. That of a log that has become read-only was told by Fail.
func (h *Health) Report(err error) {
	switch {
	case err == nil && h.failing:
		h.logger.Info("history stores updates again", slog.String("folder", h.folder))
	case err != nil && !h.failing && !errors.Is(err, history.ErrReadOnly):
		h.logger.Error("history cannot store updates; it tries again with each that comes",
			slog.String("folder", h.folder), slog.String("error", err.Error()))
	}
	h.failing = err != nil
}
