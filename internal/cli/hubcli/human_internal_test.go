package hubcli

import (
	"testing"
	"time"
)

func TestHumanBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 1023: "1,023 bytes", 1024: "1.0 KiB", 1536: "1.5 KiB", 10 << 20: "10.0 MiB",
		1 << 30: "1.0 GiB", 5 << 40: "5.0 TiB", 1 << 62: "4.0 EiB",
	} {
		if got := humanBytes(n); got != want {
			t.Errorf("humanBytes(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567", -1000: "-1,000", -999: "-999"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestHumanTime(t *testing.T) {
	now := time.Date(2030, 5, 6, 7, 8, 9, 0, time.UTC)
	for age, want := range map[time.Duration]string{
		0:                     "2030-05-06 07:08:09 UTC (just now)",
		-time.Hour:            "2030-05-06 08:08:09 UTC (just now)", // another machine's clock
		time.Second:           "2030-05-06 07:08:08 UTC (1 second ago)",
		90 * time.Second:      "2030-05-06 07:06:39 UTC (90 seconds ago)",
		10 * time.Minute:      "2030-05-06 06:58:09 UTC (10 minutes ago)",
		3 * time.Hour:         "2030-05-06 04:08:09 UTC (3 hours ago)",
		1200 * 24 * time.Hour: "2027-01-22 07:08:09 UTC (1,200 days ago)",
	} {
		if got := humanTime(now.Add(-age), now); got != want {
			t.Errorf("humanTime(%v) = %q, want %q", age, got, want)
		}
	}
}
