package hubapp

import "testing"

func TestCalm(t *testing.T) {
	streams, freed := 0, 0
	c := &calm{streams: func() int { return streams }, free: func() { freed++ }}
	for i, step := range []struct{ streams, freed int }{
		{0, 0},
		{500, 0},
		{500, 0}, // not worth it
		{4000, 0},
		{9000, 0},
		{9005, 1}, // once the storm is over
		{9005, 1},
		{9500, 1},
		{9500, 1},
		{10500, 1},
		{10500, 1}, // less than a quarter more
		{12000, 1},
		{12000, 2},
		{0, 2},
		{0, 3}, // all have gone
		{0, 3},
	} {
		streams = step.streams
		c.look()
		if freed != step.freed {
			t.Errorf("look %d, at %d streams: freed %d times, want %d", i, streams, freed, step.freed)
		}
	}
}
