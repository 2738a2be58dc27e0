package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// File is the name of a file or folder; relative names in a configuration file are relative to its folder.
type File string

// ByteSize is a number of bytes; in YAML a number, or one with the unit KiB, MiB or GiB.
type ByteSize int64

// UnmarshalYAML reads a size.
func (b *ByteSize) UnmarshalYAML(n *yaml.Node) error {
	v, err := ParseByteSize(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	*b = v
	return nil
}

// MarshalYAML writes the size with the largest unit that divides it.
func (b ByteSize) MarshalYAML() (any, error) { return b.String(), nil }

// String gives the size with the largest unit that divides it.
func (b ByteSize) String() string {
	for _, u := range byteUnits() {
		if b != 0 && int64(b)%u.factor == 0 {
			return strconv.FormatInt(int64(b)/u.factor, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

type byteUnit struct {
	name   string
	factor int64
}

func byteUnits() []byteUnit {
	return []byteUnit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}
}

// ParseByteSize reads a size such as 1024, 64KiB or 1GiB.
func ParseByteSize(s string) (ByteSize, error) {
	digits, factor := strings.TrimSpace(s), int64(1)
	for _, u := range byteUnits() {
		if d, ok := strings.CutSuffix(digits, u.name); ok {
			digits, factor = strings.TrimSpace(d), u.factor
			break
		}
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || v < 0 || v > math.MaxInt64/factor {
		return 0, fmt.Errorf("%q is not a size: write a number, or one with KiB, MiB or GiB", s)
	}
	return ByteSize(v * factor), nil
}
