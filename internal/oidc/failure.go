package oidc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/oauth2"

	"github.com/getgraft/graft/internal/reason"
)

var (
	// ErrUnavailable is of a provider that does not answer, or not as one does.
	ErrUnavailable = errors.New("the provider cannot be used just now")
	// ErrNotProven is of an answer that does not prove who it is.
	ErrNotProven = errors.New("the provider's answer proves nothing")
	// ErrNotFresh is of a sign-in at the provider that was not just now, or of which it did not say when it was.
	ErrNotFresh = errors.New("the provider did not ask the person anew")
)

// A Refusal is a provider's answer that nobody signed in (RFC 6749 §4.1.2.1).
type Refusal struct {
	Code        string // access_denied
	Description string // in the provider's words, for the person; "" where it has none
}

// Error is the code, without the provider's words.
func (r *Refusal) Error() string { return "the provider refused: " + r.Code }

// refusal reads what came back. What no code can be is another.
func refusal(code, description string) *Refusal {
	if len(code) > 60 || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz_") != "" {
		code = "another error"
	}
	return &Refusal{Code: code, Description: Plain(description, 200)}
}

// Plain is text of a provider's on one line: without what cannot be seen or turns the direction of writing, and cut after
// so many characters.
func Plain(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == unicode.ReplacementChar, !unicode.IsGraphic(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if runes := []rune(strings.Join(strings.Fields(s), " ")); len(runes) > most {
		return strings.TrimSpace(string(runes[:most-1])) + "…"
	} else {
		return string(runes)
	}
}

// unavailable wraps what went wrong on the way. Only our own words of it are kept: those of a library may repeat what the
// provider sent.
func unavailable(doing string, err error) error {
	var ref *reason.Refusal
	var status statusError
	var ours plainError
	switch {
	case errors.As(err, &ref):
		return fmt.Errorf("%s: %w: %s", doing, ErrUnavailable, ref.Message)
	case errors.As(err, &status), errors.As(err, &ours):
		return fmt.Errorf("%s: %w: %w", doing, ErrUnavailable, errors.Join(onlyOurs(err)...))
	}
	return fmt.Errorf("%s: %w: its answer is not what it should be", doing, ErrUnavailable)
}

func onlyOurs(err error) (list []error) {
	var status statusError
	var ours plainError
	if errors.As(err, &status) {
		list = append(list, status)
	}
	if errors.As(err, &ours) {
		list = append(list, ours)
	}
	return list
}

// A plainError is words of ours.
type plainError string

func (e plainError) Error() string { return string(e) }

// statusError is an answer with another status than 200.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("it answered with status %d", int(e)) }

// tokenErrors are the codes of RFC 6749 §5.2, and two that §4.1.2.1 has beside them.
var tokenErrors = []string{
	"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
	"server_error", "temporarily_unavailable",
}

// notExchanged says why a code brought no token. A code that the provider does not take proves nothing; all else is for
// whoever runs Graft.
func notExchanged(err error) error {
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		return unavailable("redeem code", err)
	}
	if !slices.Contains(tokenErrors, answer.ErrorCode) {
		return unavailable("redeem code", statusError(answer.Response.StatusCode))
	}
	if answer.ErrorCode == "invalid_grant" {
		return fmt.Errorf("redeem code: %w: invalid_grant", ErrNotProven)
	}
	return unavailable("redeem code", plainError("it answered "+answer.ErrorCode))
}
