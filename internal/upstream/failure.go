package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/getgraft/graft/internal/reason"
)

var (
	// ErrSessionLost is what an error is, beside its reason, where the server no longer knows the session. The request was
	// not carried out: open a new session and send it once more.
	ErrSessionLost = errors.New("the server no longer knows the session")
	// ErrOutcomeUnknown is what an error is, beside its reason, where the call may have been carried out: a read may be made
	// once more, anything else must not.
	ErrOutcomeUnknown = errors.New("whether the call was carried out is not known")
)

// A statusError is an answer whose status says that there is no result.
type statusError struct {
	*reason.Refusal
	status int
}

func (e *statusError) Unwrap() error { return e.Refusal }

// A versionError is a version that initialize was answered with and that is not one of its era.
type versionError struct{ *reason.Refusal }

func (e *versionError) Unwrap() error { return e.Refusal }

// noSession are the words of servers that answer 400 where the specification has 404 (2025-11-25, Session Management).
var noSession = regexp.MustCompile(`(?i)\bsession\b|not initialized`)

// refused is the error of an answer with that status and the beginning of its body.
func (s *Session) refused(status int, body []byte, id int64) error {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return reason.Refuse(reason.UpstreamUnauthorized, "%s refused its credential (status %d).", s.host(), status).
			With("host", s.host()).With("status", status)
	case s.id != "" && (status == http.StatusNotFound || status == http.StatusBadRequest && noSession.Match(body)):
		return fmt.Errorf("%w (%w)", reason.Refuse(reason.UpstreamUnavailable, "%s has ended the session.", s.host()).With("host", s.host()), ErrSessionLost)
	case status >= 300 && status < 400:
		return s.status(status, "%s redirects (status %d), which is not followed. Enter the address that it leads to.", s.host(), status)
	}
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		if m, err := parse(body); err == nil && m[0].answers(id) && m[0].Error != nil {
			return asError(m[0].Error, status)
		}
	}
	return s.status(status, "%s answered with status %d %s.", s.host(), status, http.StatusText(status))
}

func (s *Session) status(status int, format string, args ...any) error {
	return &statusError{reason.Refuse(reason.UpstreamUnavailable, format, args...).With("host", s.host()).With("status", status), status}
}

// unreadable is the error of an answer that is none.
func (s *Session) unreadable(what string) error {
	return reason.Refuse(reason.UpstreamUnavailable, "%s %s.", s.host(), what).With("host", s.host()).With("code", "protocol")
}

// uncertain is err of a call that may have been carried out.
func uncertain(err error) error {
	r := reason.Of(err)
	if r.Word != reason.TooLarge { // then it was
		r = &reason.Refusal{Word: r.Word, Message: r.Message + " Whether the call was carried out is not known: look before you make it again.", Details: r.Details}
	}
	return fmt.Errorf("%w (%w: %w)", r, ErrOutcomeUnknown, err)
}
