package egress

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/getgraft/graft/internal/reason"
)

// pasted is what somebody meant to type into a field, who copied it from a page, a mail or a file.
func (f Field) pasted(value string) (string, error) {
	value = strings.TrimPrefix(value, "\ufeff")
	value = strings.TrimRight(value, "\r\n")
	if f.Long {
		value = strings.ReplaceAll(value, "\r\n", "\n")
	}
	if !f.Spaces {
		value = strings.TrimFunc(value, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' || r == '\u200b' })
		if word, rest, _ := strings.Cut(value, " "); strings.EqualFold(word, "Bearer") && f.Name != "username" {
			value = strings.TrimSpace(rest)
		}
	}
	switch {
	case !utf8.ValidString(value):
		return "", reason.Refuse(reason.InputInvalid, "%s is not text. Copy it again.", f.Label)
	case masked(value):
		return "", reason.Refuse(reason.InputInvalid, "%s is the dots or the mark that stand in place of a secret. Copy the secret itself.", f.Label)
	}
	for _, r := range value {
		switch {
		case f.Long && (r == '\n' || r == '\t'):
		case unicode.IsControl(r):
			return "", reason.Refuse(reason.InputInvalid, "%s has a line break or another character that cannot be seen in the middle. Copy it again.", f.Label)
		case r >= 0x80 && !f.Text:
			return "", reason.Refuse(reason.InputInvalid, "%s has a character that no key has, such as a typographic quote, a dash or a space of no width. Copy it from where the vendor shows it.", f.Label)
		}
	}
	return value, nil
}

// masked reports whether a value is what stands in place of a secret: a form's dots, or our own mark.
func masked(value string) bool {
	if value == "" {
		return false
	}
	return strings.Trim(value, "•●*∙") == "" || strings.HasPrefix(value, "[redacted")
}
