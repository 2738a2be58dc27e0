package control

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/private"
)

// The protocol.
const (
	protocolHeader = "Cinnabar-Control"
	protocolName   = "hub/1"
	statsPath      = "/v1/stats"
	backupPath     = "/v1/backup"
	statusTrailer  = "Cinnabar-Status"
	statusComplete = "complete"
	tarType        = "application/x-tar"
)

// problem is the body of an error.
type problem struct {
	Error string `json:"error"`
}

func (v *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+statsPath, v.stats)
	mux.HandleFunc("GET "+backupPath, v.backup)
	mux.HandleFunc("GET "+verifyPath, v.verify)
	mux.HandleFunc("POST "+compactPath, v.compact)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "this hub has no "+r.Method+" "+r.URL.Path+"; it speaks "+protocolName)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(protocolHeader, protocolName)
		if !v.begin() {
			refuse(w, http.StatusServiceUnavailable, "the hub is stopping")
			return
		}
		defer v.running.Done()
		mux.ServeHTTP(w, r)
	})
}

func (v *Server) stats(w http.ResponseWriter, r *http.Request) {
	inspector, ok := v.service.History.(history.Inspector)
	if !ok {
		refuse(w, http.StatusNotImplemented, "this history has no statistics")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), statsTimeout)
	defer cancel()
	s, err := inspector.Stats(ctx)
	if err != nil {
		v.fail(w, r, err)
		return
	}
	answer(w, http.StatusOK, s)
}

func (v *Server) backup(w http.ResponseWriter, r *http.Request) {
	source, ok := v.service.History.(history.Backupper)
	if !ok {
		refuse(w, http.StatusNotImplemented, "this history keeps nothing that could be copied")
		return
	}
	done, ok := v.beginWork(w)
	if !ok {
		return
	}
	defer done()
	began := time.Now()
	h := w.Header()
	h.Set("Content-Type", tarType)
	h.Set("Trailer", statusTrailer)
	out := &stream{w: w, control: http.NewResponseController(w)}
	archive := tar.NewWriter(out)
	err := source.Backup(r.Context(), func(name string, size int64) (io.WriteCloser, error) {
		return beginFile(archive, name, size)
	})
	if err == nil {
		err = archive.Close()
	}
	switch {
	case err == nil:
		h.Set(statusTrailer, statusComplete)
		v.service.Logger.Info("history was copied for a backup", slog.Int64("bytes", out.bytes), slog.Duration("took", time.Since(began)))
		return
	case r.Context().Err() != nil:
		h.Set(statusTrailer, "it is stopping") // or nobody is there to read it
	default:
		h.Set(statusTrailer, err.Error())
	}
	v.service.Logger.Warn("history was not copied for a backup", slog.String("error", err.Error()))
}

// beginFile starts a file of the archive.
func beginFile(archive *tar.Writer, name string, size int64) (io.WriteCloser, error) {
	err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: int64(private.FileMode), Format: tar.FormatUSTAR})
	return entry{archive}, err
}

// entry is a file of an archive; the archive itself notices one that was not written whole.
type entry struct{ *tar.Writer }

func (e entry) Close() error { return e.Flush() }

// stream is the body of an answer, which gives up when its reader takes nothing for too long.
type stream struct {
	w       io.Writer
	control *http.ResponseController
	bytes   int64
}

func (s *stream) Write(p []byte) (int, error) {
	if err := s.control.SetWriteDeadline(time.Now().Add(stallTimeout)); err != nil {
		return 0, err
	}
	n, err := s.w.Write(p)
	s.bytes += int64(n)
	return n, err
}

// fail answers with the error of a history.
func (v *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	if errors.Is(err, history.ErrClosed) || r.Context().Err() != nil {
		status = http.StatusServiceUnavailable
	}
	v.service.Logger.Warn("a command was not served", slog.String("path", r.URL.Path), slog.String("error", err.Error()))
	refuse(w, status, err.Error())
}

func refuse(w http.ResponseWriter, status int, text string) { answer(w, status, problem{Error: text}) }

func answer(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		status, text = http.StatusInternalServerError, fmt.Appendf(nil, `{"error":%q}`, err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // a client that has gone needs no answer
}
