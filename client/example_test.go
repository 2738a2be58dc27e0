package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/cinnabar-hub/cinnabar/client"
)

// exampleHub starts a hub for an example: its URL, a source of tokens that may do everything there, and what stops it.
func exampleHub() (hubURL string, token func(context.Context) (string, error), stop func()) {
	dir, err := os.MkdirTemp("", "cinnabar-example-*")
	if err != nil {
		log.Fatal(err) //nolint:forbidigo // an example has no testing.T to fail
	}
	h, err := newHub(dir, false)
	if err == nil {
		err = h.Start()
	}
	if err != nil {
		log.Fatal(err) //nolint:forbidigo // an example has no testing.T to fail
	}
	return h.URL, func(context.Context) (string, error) { return h.Token(nil), nil }, func() { h.Stop(); _ = os.RemoveAll(dir) }
}

func ExampleNew() {
	hubURL, token, stop := exampleHub()
	defer stop()

	hub, err := client.New(client.Options{HubURL: hubURL, Token: token})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hub.CloseIdleConnections()
	fmt.Println("nothing has been sent yet")
	// Output: nothing has been sent yet
}

// A token never travels in clear to another machine.
func ExampleOptions() {
	_, err := client.New(client.Options{
		HubURL: "http://hub.example.com/.well-known/mercure",
		Token:  func(context.Context) (string, error) { return "secret", nil },
	})
	fmt.Println(err)
	// Output: client: a token must not be sent over plain HTTP to another machine
}

func ExampleClient_Publish() {
	hubURL, token, stop := exampleHub()
	defer stop()
	ctx := context.Background()

	hub, err := client.New(client.Options{HubURL: hubURL, Token: token})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hub.CloseIdleConnections()

	id, err := hub.Publish(ctx, client.Update{
		Topics:  []string{"https://example.com/books/1"},
		Data:    `{"status":"sold"}`,
		Private: true, // only for readers whose token allows it
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("published", len(id) > 0)
	// Output: published true
}

func ExampleClient_Subscribe() {
	hubURL, token, stop := exampleHub()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	publish(ctx, hubURL, token, "https://example.com/books/1", `{"status":"sold"}`)

	hub, err := client.New(client.Options{HubURL: hubURL, Token: token})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hub.CloseIdleConnections()

	books := client.Subscription{
		Patterns: []string{"https://example.com/books/:id"},
		Cursor:   client.Earliest, // or the ID of the last event dealt with; empty: from now on
	}
	for event, err := range hub.Subscribe(ctx, books) {
		if err != nil {
			fmt.Println(err) // another attempt would not help
			return
		}
		if event.Gap {
			fmt.Println("updates are missing: read the books anew")
		}
		fmt.Println(event.Data)
		break // the connection is closed
	}
	// Output: {"status":"sold"}
}

// publish publishes one update.
func publish(ctx context.Context, hubURL string, token func(context.Context) (string, error), topic, data string) {
	hub, err := client.New(client.Options{HubURL: hubURL, Token: token})
	if err != nil {
		log.Fatal(err) //nolint:forbidigo // an example has no testing.T to fail
	}
	defer hub.CloseIdleConnections()
	if _, err := hub.Publish(ctx, client.Update{Topics: []string{topic}, Data: data}); err != nil {
		log.Fatal(err) //nolint:forbidigo // an example has no testing.T to fail
	}
}

// An update may be about several topics: readers of any of them get it, once.
func ExampleUpdate() {
	hubURL, token, stop := exampleHub()
	defer stop()
	ctx := context.Background()
	hub, err := client.New(client.Options{HubURL: hubURL, Token: token})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hub.CloseIdleConnections()

	_, err = hub.Publish(ctx, client.Update{
		Topics: []string{"https://example.com/books/1", "https://example.com/authors/7"},
		Data:   `{"price":12}`,
		Type:   "price",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for event, err := range hub.Subscribe(ctx, client.Subscription{Topics: []string{"https://example.com/authors/7"}, Cursor: client.Earliest}) {
		fmt.Println(event.Type, event.Data, err)
		break
	}
	// Output: price {"price":12} <nil>
}

// A publication whose answer was lost may have been published. With an id of its own, it can be repeated: readers
// recognise the repetition.
func ExampleNewID() {
	hubURL, token, stop := exampleHub()
	defer stop()
	ctx := context.Background()
	hub, err := client.New(client.Options{HubURL: hubURL, Token: token})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hub.CloseIdleConnections()

	update := client.Update{Topics: []string{"https://example.com/books/1"}, ID: client.NewID()}
	for attempt := 1; ; attempt++ {
		_, err := hub.Publish(ctx, update)
		failure, ok := errors.AsType[*client.Error](err)
		if !ok || attempt == 5 || !failure.Retryable() && !failure.Uncertain {
			fmt.Println("published:", err == nil)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(failure.RetryAfter, time.Duration(attempt)*time.Second)):
		}
	}
	// Output: published: true
}

func ExampleError() {
	hubURL, _, stop := exampleHub()
	defer stop()
	anonymous, err := client.New(client.Options{HubURL: hubURL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer anonymous.CloseIdleConnections()

	_, err = anonymous.Publish(context.Background(), client.Update{Topics: []string{"https://example.com/books/1"}})
	if failure, ok := errors.AsType[*client.Error](err); ok {
		fmt.Println(failure.Status, failure.Detail)
		fmt.Println("try again later:", failure.Retryable())
		fmt.Println("published all the same:", failure.Uncertain)
	}
	// Output:
	// 401 This request needs an access token: Authorization: Bearer TOKEN, or the cookie that the hub's metadata names.
	// try again later: false
	// published all the same: false
}

// A subscription tries again as long as that may help. Retry is where a program that has enough says so.
func ExampleSubscription() {
	hub, err := client.New(client.Options{HubURL: "http://127.0.0.1:1/.well-known/mercure"}) // nobody listens there
	if err != nil {
		fmt.Println(err)
		return
	}
	attempts := 0
	books := client.Subscription{
		Topics: []string{"https://example.com/books/1"},
		Retry: func(err error, wait time.Duration) bool {
			attempts++
			return attempts < 2
		},
	}
	for _, err := range hub.Subscribe(context.Background(), books) {
		fmt.Println("gave up after", attempts, "attempts:", err != nil)
	}
	// Output: gave up after 2 attempts: true
}

// Opened tells at once that updates are missing; [client.Event.Gap] does with the next event.
func ExampleConnection() {
	hubURL, token, stop := exampleHub()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hub, err := client.New(client.Options{HubURL: hubURL, Token: token})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hub.CloseIdleConnections()

	books := client.Subscription{
		Topics: []string{"https://example.com/books/1"},
		Cursor: "urn:uuid:00000000-0000-4000-8000-000000000000", // an event that the hub has dropped long ago
		Opened: func(c client.Connection) {
			fmt.Println("missing:", c.Gap)
			fmt.Println("begins with the oldest update kept:", c.From == client.Earliest)
			cancel()
		},
	}
	for _, err := range hub.Subscribe(ctx, books) {
		fmt.Println(errors.Is(err, context.Canceled))
	}
	// Output:
	// missing: true
	// begins with the oldest update kept: true
	// true
}

// The id of the last event that a program has dealt with is all it must keep to go on after a restart of its own.
func ExampleEvent() {
	hubURL, token, stop := exampleHub()
	defer stop()
	ctx := context.Background()
	for _, data := range []string{"one", "two", "three"} {
		publish(ctx, hubURL, token, "https://example.com/books/1", data)
	}
	hub, err := client.New(client.Options{HubURL: hubURL, Token: token})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hub.CloseIdleConnections()

	kept := client.Earliest
	for range 3 { // three runs of a program that crashes after each event
		for event, err := range hub.Subscribe(ctx, client.Subscription{Topics: []string{"*"}, Cursor: kept}) {
			fmt.Println(event.Data, err)
			kept = event.ID
			break
		}
	}
	// Output:
	// one <nil>
	// two <nil>
	// three <nil>
}

func ExampleDiscover() {
	hubURL, token, stop := exampleHub()
	defer stop()
	ctx := context.Background()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Link", `<`+hubURL+`>; rel="mercure"; last-event-id="earliest"`)
		w.Header().Add("Link", `<https://example.com/books/1>; rel="self"`)
		_, _ = fmt.Fprint(w, `{"status":"for sale"}`)
	}))
	defer site.Close()
	publish(ctx, hubURL, token, "https://example.com/books/1", `{"status":"sold"}`)

	found, err := client.Discover(ctx, nil, site.URL+"/books/1")
	if err != nil {
		fmt.Println(err)
		return
	}
	hub, err := client.New(client.Options{HubURL: found.HubURL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hub.CloseIdleConnections()
	for event, err := range hub.Subscribe(ctx, client.Subscription{Topics: []string{found.Topic}, Cursor: found.Cursor}) {
		fmt.Println(event.Data, err)
		break
	}
	// Output: {"status":"sold"} <nil>
}

// A resource says more than the address of its hub.
func ExampleDiscovery() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Link", `<https://hub.example.com/.well-known/mercure>; rel="mercure"; content-type="application/merge-patch+json"`)
		w.Header().Set("Content-Type", "application/json")
	}))
	defer site.Close()
	found, err := client.Discover(context.Background(), nil, site.URL+"/books/1")
	fmt.Println(found.HubURL, err)
	fmt.Println("the topic is the page itself:", found.Topic == site.URL+"/books/1")
	fmt.Println(found.ContentType)
	// Output:
	// https://hub.example.com/.well-known/mercure <nil>
	// the topic is the page itself: true
	// application/merge-patch+json
}

func ExampleErrNoHub() {
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer plain.Close()
	_, err := client.Discover(context.Background(), nil, plain.URL)
	fmt.Println(errors.Is(err, client.ErrNoHub))
	// Output: true
}

func ExampleErrEventTooLarge() {
	hubURL, token, stop := exampleHub()
	defer stop()
	ctx := context.Background()
	publish(ctx, hubURL, token, "https://example.com/books/1", "a long story, too long for this reader")
	hub, err := client.New(client.Options{HubURL: hubURL, MaxEventBytes: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hub.CloseIdleConnections()
	for _, err := range hub.Subscribe(ctx, client.Subscription{Topics: []string{"*"}, Cursor: client.Earliest}) {
		fmt.Println(errors.Is(err, client.ErrEventTooLarge))
	}
	// Output: true
}
