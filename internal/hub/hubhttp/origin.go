package hubhttp

import (
	"fmt"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
)

// origins is an exact allow-list of web origins (CORS-04).
type origins map[string]struct{}

// newOrigins checks that every entry is the serialisation of an origin as browsers send it. Anything else could never match,
// so it is refused with the spelling that was probably meant.
func newOrigins(list []string) (origins, error) {
	set := make(origins, len(list))
	for _, s := range list {
		canonical, ok := httpserver.SerialiseOrigin(s)
		switch {
		case !ok:
			return nil, fmt.Errorf("%w: %q (write scheme://host[:port])", ErrOrigin, s)
		case canonical != s:
			return nil, fmt.Errorf("%w: %q (write %q)", ErrOrigin, s, canonical)
		}
		set[s] = struct{}{}
	}
	return set, nil
}

func (o origins) has(origin string) bool {
	_, ok := o[origin]
	return ok
}
