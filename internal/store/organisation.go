package store

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/getgraft/graft/internal/reason"
)

// An Organisation is the tenant.
type Organisation struct {
	ID        OrgID
	Name      string
	CreatedAt time.Time
}

// Organisation is the caller's.
func (tx *Tx) Organisation(ctx context.Context) (Organisation, error) {
	return one[Organisation](ctx, tx.tx, `SELECT id, name, created_at FROM organisation`, nil)
}

// FoldEmail is the form an e-mail address is stored and compared in.
func FoldEmail(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// CheckEmail refuses what cannot be an address: it wants something on both sides of one @ and nothing that splits
// a header. Whether mail arrives there is nobody's concern here.
func CheckEmail(s string) error {
	local, domain, ok := strings.Cut(s, "@")
	bad := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`,;<>"`, r)
	}
	if !ok || local == "" || domain == "" || strings.Contains(domain, "@") || len(s) > 254 || strings.IndexFunc(s, bad) >= 0 || !utf8.ValidString(s) {
		return reason.Refuse(reason.InputInvalid, "Enter an email address such as ana@example.com.").Field("email")
	}
	return nil
}

// CheckName refuses a name a person could not read back: empty, over max characters, or with control, format or
// line-breaking characters. field names it in the refusal.
func CheckName(field, s string, maxChars int) error {
	switch {
	case strings.TrimSpace(s) == "":
		return reason.Refuse(reason.InputInvalid, "Enter a name.").Field(field)
	case utf8.RuneCountInString(s) > maxChars:
		return reason.Refuse(reason.InputInvalid, "Keep the name to %d characters.", maxChars).Field(field)
	case !utf8.ValidString(s), strings.IndexFunc(s, unprintable) >= 0:
		return reason.Refuse(reason.InputInvalid, "The name has a character that cannot be shown.").Field(field)
	}
	return nil
}

func unprintable(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) || r == utf8.RuneError
}
