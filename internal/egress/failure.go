package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/getgraft/graft/internal/reason"
)

// ErrSent is what the error of a request is, beside its reason, where the request had been given to a connection:
// whether the other party has carried it out is not known then. Of other errors the request did not arrive.
var ErrSent = errors.New("egress: the request may have been carried out")

type sentError struct{ error }

func (e sentError) Unwrap() error { return e.error }

func (sentError) Is(target error) bool { return target == ErrSent }

// mark makes err ErrSent if the request may have gone out.
func (s *sent) mark(err error) error {
	if !s.began.Load() {
		return err
	}
	return sentError{err}
}

// failure says what went wrong on the way to an origin. The words are ours: the text of err may repeat what the
// other party sent, which may be the credential.
func failure(ctx context.Context, to origin, err error) error {
	var timeout net.Error
	switch {
	case errors.Is(err, errNotPublic):
		return reason.Refuse(reason.HostNotPublic, "%s does not lead to a public address.", to).With("host", to.String())
	case errors.Is(err, errPlainHTTP):
		return reason.Refuse(reason.InputInvalid, "%s is reached over https only.", to.host).Field("url")
	case errors.Is(err, errOtherPort):
		return reason.Refuse(reason.InputInvalid, "%s is reached on port %d only.", to.host, defaultPort(to.scheme)).Field("url")
	case errors.Is(context.Cause(ctx), errSilent):
		return fmt.Errorf("%w (%w)", reason.Refuse(reason.Timeout, "%s sent nothing for too long.", to), context.DeadlineExceeded)
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%w (%w)", reason.Refuse(reason.Cancelled, "The call to %s was cancelled.", to), context.Canceled)
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%w (%w)", reason.Refuse(reason.Timeout, "%s did not answer in time.", to), context.DeadlineExceeded)
	}
	code, sentence := cause(err)
	return unavailable(to, code, sentence, to)
}

// unavailable is a refusal with a code that programs may branch on.
func unavailable(to origin, code, format string, args ...any) *reason.Refusal {
	return reason.Refuse(reason.UpstreamUnavailable, format, args...).With("host", to.String()).With("code", code)
}

// cause classifies an error of the network.
func cause(err error) (code, sentence string) {
	var (
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		op          *net.OpError
	)
	switch {
	case errors.Is(err, errEncoding):
		return "encoding", "%s sent a body that is not in the encoding it names."
	case errors.As(err, &dns) && dns.IsNotFound:
		return "dns", "The name of %s does not exist."
	case errors.As(err, &dns):
		return "dns", "The name of %s could not be looked up."
	case errors.As(err, &certificate):
		return "tls", "The certificate of %s is not trusted here, or is for another name."
	case errors.As(err, &op) && op.Op == "remote error": // so does crypto/tls name an alert
		return "tls", "%s ended the TLS handshake."
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused", "%s refused the connection."
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "unreachable", "There is no route to %s."
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "closed", "%s closed the connection before its answer was complete."
	default:
		return "protocol", "%s did not answer in the protocol that its scheme names."
	}
}
