package upstream

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/rpc"
)

// Call calls the tool that the server knows by that name and returns its CallToolResult as it came. A server that answers
// with an error has failed at the tool: that is a CallToolResult too, with isError and the server's sentence.
//
// progress and log hear what the server says meanwhile, in order and never after Call has returned; they must not wait.
// Either may be nil. When ctx ends, so does the call, and the server is told.
//
// An error is a *reason.Refusal. It is ErrSessionLost as well where the call may be made once more in a new session, and
// ErrOutcomeUnknown where it may have been carried out; otherwise it was not.
func (s *Session) Call(
	ctx context.Context, name string, args jsontext.Value, progress func(catalog.Progress), log func(level, logger string, data jsontext.Value),
) (jsontext.Value, error) {
	if args == nil {
		args = jsontext.Value("{}")
	}
	params := make([]byte, 0, len(name)+len(args)+32)
	params = rpc.AppendString(append(params, `"name":`...), name)
	params = append(append(params, `,"arguments":`...), args...)
	r := request{method: string(mcpgo.MethodToolsCall), params: params, timeout: s.d.CallTimeout}
	if progress != nil || log != nil {
		r.relay = &relay{progress: progress, log: log}
	}
	if s.modern {
		r.header = s.callHeader(name, params)
	}
	result, _, err := s.request(ctx, r)
	var remote *remoteError
	if s.modern && errors.As(err, &remote) && remote.code == mcpgo.HEADER_MISMATCH {
		// It was refused and not carried out: an argument belongs into a header too, which only the list says.
		if _, listErr := s.Tools(ctx); listErr == nil {
			remote, r.header = nil, s.callHeader(name, params)
			result, _, err = s.request(ctx, r)
		}
	}
	var status *statusError
	switch {
	case errors.As(err, &remote):
		return failure(remote), nil
	case errors.As(err, &status) && status.status >= http.StatusInternalServerError:
		return nil, uncertain(err) // whatever stands before the server may have passed the call on
	case err != nil:
		return nil, err
	case result.Kind() != '{':
		return nil, uncertain(s.unreadable("answered the call with something else than a result"))
	case asks(result):
		return nil, reason.Refuse(reason.AskUnavailable, "%s has a question for a person, which cannot be passed on.", s.host()).With("host", s.host())
	}
	if !utf8.Valid(result) {
		return bytes.ToValidUTF8(result, []byte("\uFFFD")), nil // only within strings is it still JSON
	}
	return result, nil
}

// failure is the result of a call that the server answered with an error.
func failure(e *remoteError) jsontext.Value {
	details := map[string]any{"code": e.code}
	if e.status != 0 {
		details["status"] = e.status
	}
	return rpc.ToolFailure(e.message, details)
}

// asks reports whether a result is a question (2026-07-28, Multi Round-Trip Requests), which a server must not ask of a
// client that declared nothing.
func asks(result jsontext.Value) bool {
	if !bytes.Contains(result, []byte(`"input_required"`)) {
		return false
	}
	var r struct {
		Type string `json:"resultType"`
	}
	return json.Unmarshal(result, &r) == nil && r.Type == "input_required"
}

// callHeader is what of a call is repeated in headers (2026-07-28, Standard Headers).
func (s *Session) callHeader(name string, params []byte) map[string]string {
	h := map[string]string{}
	if encoded, ok := mcpgo.EncodeHeaderValue(name); ok {
		h[mcpgo.HeaderName] = encoded
	}
	if tools := s.params.Load(); tools != nil && (*tools)[name] != nil {
		for header, value := range mcpgo.GenerateParamHeaders((*tools)[name], append(append([]byte("{"), params...), '}')) {
			h[header] = value
		}
	}
	return h
}
