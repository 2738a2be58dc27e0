package demo

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
)

// book is the demo resource.
type book struct {
	ID     string `json:"@id"` // the topic its updates are published to
	Title  string `json:"title"`
	Status string `json:"status"`
}

// book answers GET /demo/books/:id with a document and with where its updates come from: the hub, the topic, and the
// event that the document is at least as new as, so that a reader who starts there misses nothing.
func (f *face) book(c echo.Context) error {
	titles := [...]string{"The Cinnabar Path", "A Book of Seals", "Letters in Vermilion"}
	n, err := strconv.Atoi(c.Param("id"))
	if err != nil || n < 1 || n > len(titles) || strconv.Itoa(n) != c.Param("id") {
		return &httpserver.Problem{
			Status: http.StatusNotFound, Detail: "There is no such book.",
			Hint: fmt.Sprintf("Try %s1 to %s%d.", bookPath, bookPath, len(titles)),
		}
	}
	// Asked before the document is made: an update in between is then replayed, not lost.
	last, err := f.deps.LastEventID(c.Request().Context())
	if err != nil {
		return fmt.Errorf("last event id: %w", err)
	}
	if last == "" {
		last = mercure.Earliest
	}
	topic := f.options.TopicBase + "/books/" + strconv.Itoa(n)
	h := c.Response().Header()
	h.Add("Link", mercure.HubLink(f.options.HubURL, last))
	h.Add("Link", fmt.Sprintf(`<%s>; rel="self"`, topic))
	h.Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, book{ID: topic, Title: titles[n-1], Status: "available"})
}
