package control

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

const (
	// maxAnswerBytes bounds an answer that is no copy.
	maxAnswerBytes = 64 << 10
	// silence is how long a server may say nothing.
	silence = 60 * time.Second
)

// Client asks a running hub. It implements history.Inspector, Backupper, Verifier and Compacter as the hub's log does, with the
// errors of this package beside those that the log's become: texts.
type Client struct {
	path string
	http *http.Client
}

var (
	_ history.Inspector = (*Client)(nil)
	_ history.Backupper = (*Client)(nil)
)

// Dial returns a client of the hub that listens on the socket at path. It returns ErrNotRunning when nobody does.
func Dial(ctx context.Context, path string) (*Client, error) {
	conn, err := dialUnix(ctx, path)
	switch {
	case err != nil && isRefused(err):
		return nil, fmt.Errorf("%w: nobody listens on %s", ErrNotRunning, path)
	case err != nil:
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := conn.Close(); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := dialUnix(ctx, path)
		if err != nil {
			return nil, err
		}
		return talker{conn}, nil
	}
	t := &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeaderBytes}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{path: path, http: &http.Client{Transport: t, CheckRedirect: refuse}}, nil
}

// talker is a connection whose other side must not fall silent.
type talker struct{ net.Conn }

func (t talker) Read(p []byte) (int, error) {
	if err := t.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	return t.Conn.Read(p)
}

// Stats implements history.Inspector.
func (c *Client) Stats(ctx context.Context) (history.Stats, error) {
	resp, err := c.get(ctx, statsPath)
	if err != nil {
		return history.Stats{}, fmt.Errorf("ask the hub for statistics: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	var s history.Stats
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswerBytes)).Decode(&s); err != nil {
		return history.Stats{}, fmt.Errorf("ask the hub for statistics: %w: %w", ErrProtocol, err)
	}
	return s, nil
}

// Backup implements history.Backupper. It returns ErrIncomplete when the hub could not finish, or ended meanwhile.
func (c *Client) Backup(ctx context.Context, create history.CreateFile) error {
	resp, err := c.get(ctx, backupPath)
	if err != nil {
		return fmt.Errorf("ask the hub for a copy: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body := &source{Reader: resp.Body}
	err = unpack(body, create)
	if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
		// What the hub says of the copy comes after all of it.
		_, _ = io.Copy(io.Discard, io.LimitReader(body, maxAnswerBytes)) // the source remembers
	}
	status := resp.Trailer.Get(statusTrailer)
	switch {
	case status != "" && status != statusComplete:
		return fmt.Errorf("%w: the hub says: %s", ErrIncomplete, status)
	case ctx.Err() != nil:
		return fmt.Errorf("receive the copy: %w", ctx.Err())
	case body.err != nil:
		return fmt.Errorf("%w: the hub ended: %w", ErrIncomplete, body.err)
	case err != nil:
		return fmt.Errorf("receive the copy: %w", err)
	case status == "":
		return fmt.Errorf("%w: the hub did not say that it is", ErrIncomplete)
	}
	return nil
}

// source is what is received. It remembers why it broke off, so that this can be told from a failure to store it.
type source struct {
	io.Reader

	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// unpack writes the files of an archive.
func unpack(r io.Reader, create history.CreateFile) error {
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case h.Typeflag != tar.TypeReg || h.Format != tar.FormatUSTAR || h.Size < 0:
			// Other formats have sparse files, which can be far larger than what is sent of them, and names from elsewhere.
			return fmt.Errorf("%w: the copy holds something else than plain files", ErrProtocol)
		}
		w, err := create(h.Name, h.Size)
		if err != nil {
			return err
		}
		_, err = io.CopyN(w, archive, h.Size)
		if closed := w.Close(); err == nil { // a failure before it is the cause of what it complains about
			err = closed
		}
		if err != nil {
			return err
		}
	}
}

// get asks for a path and returns the answer if it is a good one.
func (c *Client) get(ctx context.Context, path string) (*http.Response, error) {
	return c.send(ctx, http.MethodGet, path)
}

// send sends a request without a body and returns the answer if it is a good one.
func (c *Client) send(ctx context.Context, method, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://hub"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK && resp.Header.Get(protocolHeader) == protocolName {
		return resp, nil
	}
	err = c.refusal(resp)
	return nil, errors.Join(err, resp.Body.Close())
}

// refusal says in an error what an answer that is no good one says.
func (c *Client) refusal(resp *http.Response) error {
	spoken := resp.Header.Get(protocolHeader)
	if spoken != protocolName {
		return fmt.Errorf("%w: %s is no control socket that this program knows (%q)", ErrProtocol, c.path, spoken)
	}
	var p problem
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxAnswerBytes)).Decode(&p) // the status says enough without
	kind := ErrProtocol
	switch resp.StatusCode {
	case http.StatusNotImplemented:
		kind = ErrUnsupported
	case http.StatusConflict:
		kind = ErrBusy
	case http.StatusServiceUnavailable, http.StatusInternalServerError:
		return fmt.Errorf("the hub says: %s", p.Error)
	}
	return fmt.Errorf("%w: %s", kind, p.Error)
}
