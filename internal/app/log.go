package app

import (
	"fmt"
	"io"
	"log/slog"
	"net/netip"

	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/obs"
)

// NewLogger makes the logger that a configuration asks for.
func NewLogger(w io.Writer, c config.Log) (*slog.Logger, error) {
	level, err := obs.ParseLevel(c.Level)
	if err != nil {
		return nil, err
	}
	return obs.NewLogger(obs.LogOptions{Writer: w, Format: obs.LogFormat(c.Format), Level: level})
}

// Prefixes reads the addresses and blocks of trusted proxies.
func Prefixes(list []string) ([]netip.Prefix, error) {
	out := make([]netip.Prefix, 0, len(list))
	for _, s := range list {
		if addr, err := netip.ParseAddr(s); err == nil {
			out = append(out, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, fmt.Errorf("trusted_proxies: %q is neither an address nor a block such as 10.0.0.0/8", s)
		}
		out = append(out, p)
	}
	return out, nil
}
