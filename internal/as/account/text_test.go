package account_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/as/account"
)

func TestNewID(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := account.NewID()
		if len(id) != 28 || !strings.HasPrefix(id, "u_") || strings.Trim(id[2:], "abcdefghijklmnopqrstuvwxyz234567") != "" {
			t.Fatalf("NewID = %q, want u_ and 26 characters of base32", id)
		}
		if seen[id] {
			t.Fatalf("NewID gave %q twice", id)
		}
		seen[id] = true
	}
}

func TestNormalizeUsername(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"ada", "ada"},
		{"Ada", "ada"},
		{"ADA.Lovelace-1815@Example.com", "ada.lovelace-1815@example.com"},
		{"Zoe\u0308", "zoë"},   // decomposed
		{"ＡＤＡ", "ada"},         // full width
		{"ΣΊΣΥΦΟΣ", "σίσυφοσ"}, // lower-cased without context
		{"straße", "straße"},   // not folded to ss
		{"用户", "用户"},           //
		{"يوسف", "يوسف"},       // right to left
		{"u_x", "u_x"},         // a name is not an id
		{strings.Repeat("a", 254), strings.Repeat("a", 254)},
	} {
		got, err := account.NormalizeUsername(c.in)
		if err != nil || got != c.want {
			t.Errorf("NormalizeUsername(%q) = %q, %v, want %q", c.in, got, err, c.want)
		}
	}
	for _, in := range []string{
		"", " ", "a b", "a\tb", "a\x00b", "a\nb", "\u200b", "a\u202eb", "\ufeffa", "☃", "\xff", "a\u00a0b", strings.Repeat("a", 255),
		strings.Repeat("a", 100_000), "aيوسف1b", "\u0300",
	} {
		if got, err := account.NormalizeUsername(in); !errors.Is(err, account.ErrUsername) {
			t.Errorf("NormalizeUsername(%.20q) = %q, %v, want ErrUsername", in, got, err)
		} else if len(in) > 3 && strings.Contains(err.Error(), in) {
			t.Errorf("the error holds the name: %v", err)
		}
	}
}

func FuzzNormalizeUsername(f *testing.F) {
	for _, seed := range []string{"Ada", "Zoe\u0308", "ẞ", "İ", "ﬀ", "\u1fb3", "ͅ", "٠1", "Ⅷ", "ａ\u3099"} {
		f.Add(seed)
	}
	f.Fuzz(checkUsername)
}

func checkUsername(t *testing.T, in string) {
	t.Helper()
	name, err := account.NormalizeUsername(in)
	if err != nil {
		return
	}
	again, err := account.NormalizeUsername(name)
	if err != nil || again != name {
		t.Errorf("%q is spelled %q, which is spelled %q (%v)", in, name, again, err)
	}
	if name == "" || len(name) > account.MaxUsernameBytes || !utf8.ValidString(name) {
		t.Errorf("NormalizeUsername(%q) = %q", in, name)
	}
}

func TestNormalizeUsername_isStable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { checkUsername(t, rapid.String().Draw(rt, "name")) })
}

func TestCheckPassword(t *testing.T) {
	for _, good := range []string{
		"12345678", "correct horse battery staple", "пароль пароль", "🐎🔋📎✅🐎🔋📎✅", "        ", strings.Repeat("a", 256), strings.Repeat("🐎", 256),
		`"'\<>&;--`,
	} {
		if err := account.CheckPassword("ada", good); err != nil {
			t.Errorf("CheckPassword(%.20q) = %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "1234567", "🐎🔋📎✅🐎🔋📎", "12345678\x00", "1234\n5678", "12345678\u0007", "1234567\xff", strings.Repeat("a", 257), strings.Repeat("a", 1<<20),
		"ada.lovelace", "ADA.Lovelace", "e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301", // seven characters
	} {
		if err := account.CheckPassword("ada.lovelace", bad); !errors.Is(err, account.ErrPassword) {
			t.Errorf("CheckPassword(%.20q) = %v, want ErrPassword", bad, err)
		} else if len(bad) > 3 && strings.Contains(err.Error(), bad) {
			t.Errorf("the error holds the password: %v", err)
		}
	}
}
