package reason

import "net/http"

// The words. Their meaning stands once, in Table.
const (
	// The four of a refused bearer (401).
	TokenMissing    Word = "token_missing"
	TokenUnknown    Word = "token_unknown"
	TokenExpired    Word = "token_expired"
	SessionMismatch Word = "session_mismatch"

	// Of a request as such.
	RequestInvalid       Word = "request_invalid"
	SessionRequired      Word = "session_required"
	SessionNotFound      Word = "session_not_found"
	VersionUnsupported   Word = "version_unsupported"
	HeaderMismatch       Word = "header_mismatch"
	MethodNotAllowed     Word = "method_not_allowed"
	MediaTypeUnsupported Word = "media_type_unsupported"
	NotAcceptable        Word = "not_acceptable"
	TooLarge             Word = "too_large"
	HostNotAllowed       Word = "host_not_allowed"
	OriginNotAllowed     Word = "origin_not_allowed"
	RateLimited          Word = "rate_limited"
	Unavailable          Word = "unavailable"
	Internal             Word = "internal"

	// Of what was asked for.
	InputInvalid     Word = "input_invalid"
	NotFoundWord     Word = "not_found"
	NameTaken        Word = "name_taken"
	Forbidden        Word = "forbidden"
	SignInFailed     Word = "sign_in_failed"
	LinkNotValid     Word = "link_not_valid"
	ClientNotProven  Word = "client_not_proven"
	ConsentNotValid  Word = "consent_not_valid"
	ConsentElsewhere Word = "consent_elsewhere"
	ToolNotFound     Word = "tool_not_found"
	ToolFailed       Word = "tool_failed"
	ToolDenied       Word = "tool_denied"
	AwaitingApproval Word = "awaiting_approval"
	ApprovalDeclined Word = "approval_declined"
	ApprovalExpired  Word = "approval_expired"
	AskNotFound      Word = "ask_not_found"
	RunNotFound      Word = "run_not_found"
	ResultNotFound   Word = "result_not_found"
	ConnectionAbsent Word = "connection_not_found"

	AwaitingConnection   Word = "awaiting_connection"
	AwaitingCredential   Word = "awaiting_credential"
	AwaitingScope        Word = "awaiting_scope"
	ConnectionExists     Word = "connection_exists"
	ConnectionDeclined   Word = "connection_declined"
	ScopeDeclined        Word = "scope_declined"
	ConnectionNotInScope Word = "connection_not_in_scope"
	ConnectionRevoked    Word = "connection_revoked"
	CredentialIncomplete Word = "credential_incomplete"

	AskUnavailable Word = "ask_unavailable"
	Timeout        Word = "timeout"
	Cancelled      Word = "cancelled"

	// Of the way out.
	HostNotPublic        Word = "host_not_public"
	HostNotInSet         Word = "host_not_in_set"
	UpstreamUnavailable  Word = "upstream_unavailable"
	UpstreamUnauthorized Word = "upstream_unauthorized"
)

// An Entry is one row of the table.
type Entry struct {
	Word   Word
	Status int    // HTTP status where the refusal is the whole answer
	When   string // when it is given
	Next   string // what the reader does about it
}

// Table is every word Graft refuses with, in the order of the documentation.
var Table = []Entry{
	{TokenMissing, http.StatusUnauthorized, "No bearer header arrived.", "Send `Authorization: Bearer <token>`."},
	{TokenUnknown, http.StatusUnauthorized, "The token resolves to no agent, or its agent, member or organisation was revoked. The two are not told apart.", "Make a new token in the console, or sign in again."},
	{TokenExpired, http.StatusUnauthorized, "An OAuth access token ran out.", "Use the refresh token."},
	{SessionMismatch, http.StatusUnauthorized, "The session id was opened by another agent's token. That session stays alive.", "Open a session of your own with `initialize`."},

	{RequestInvalid, http.StatusBadRequest, "The request is not a JSON-RPC message that this endpoint takes.", "Read the message: it names the part."},
	{SessionRequired, http.StatusBadRequest, "A request other than `initialize` came without `Mcp-Session-Id`.", "Call `initialize` and send the id that it answers with."},
	{SessionNotFound, http.StatusNotFound, "The session id is not one of ours, has ended, or is older than 30 days.", "Call `initialize` again."},
	{VersionUnsupported, http.StatusBadRequest, "`MCP-Protocol-Version` names a version that is not spoken here.", "Use one of the versions listed in the message."},
	{HeaderMismatch, http.StatusBadRequest, "At 2026-07-28, a header says another thing than the body, or is missing.", "Send `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` as the body has them."},
	{MethodNotAllowed, http.StatusMethodNotAllowed, "The HTTP method is not served on this path.", "Use one that `Allow` lists."},
	{MediaTypeUnsupported, http.StatusUnsupportedMediaType, "The body is not `application/json`, or is compressed.", "Send plain `application/json`."},
	{NotAcceptable, http.StatusNotAcceptable, "`Accept` lists nothing that this path answers with.", "Accept `application/json` and `text/event-stream`."},
	{TooLarge, http.StatusRequestEntityTooLarge, "A body is larger than the limit that the message names.", "Send, or ask for, less at once."},
	{HostNotAllowed, http.StatusForbidden, "The `Host` header is not this deployment's.", "Use the address the console shows. An operator sets it with `GRAFT_ORIGIN`."},
	{OriginNotAllowed, http.StatusForbidden, "A browser page of another origin sent the request.", "An operator may allow the origin with `GRAFT_ORIGINS_ALLOW`."},
	{RateLimited, http.StatusTooManyRequests, "More requests than the limit.", "Wait as long as `Retry-After` says."},
	{Unavailable, http.StatusServiceUnavailable, "The database cannot be reached, or the document that an app is known by.", "Try again shortly. The token is still good."},
	{Internal, http.StatusInternalServerError, "Something went wrong on our side; its text is withheld.", "Give the operator the request id."},

	{InputInvalid, http.StatusUnprocessableEntity, "An argument or a field is missing or wrong.", "`problems` or `field` names it."},
	{NotFoundWord, http.StatusNotFound, "It does not exist, or it belongs to someone else.", "Check the id."},
	{NameTaken, http.StatusConflict, "A live one of that name exists, without regard to case.", "Choose another name."},
	{Forbidden, http.StatusForbidden, "Your role does not allow it.", "Ask an admin or an owner of the organisation."},
	{SignInFailed, http.StatusUnauthorized, "Email and password do not fit together, or a passkey or an account at the sign-in provider belongs to nobody here.", "Try again, or use a new one-time link."},
	{LinkNotValid, http.StatusGone, "The one-time link was used, has expired, or never existed.", "Whoever runs Graft makes a new one with `graft user link`; a new invite, whoever sent it."},
	{ClientNotProven, http.StatusBadRequest, "An app asked to be connected, and who it is or where the answer goes cannot be proven. Nothing was sent anywhere.", "Connect again from the app. If it stays, tell its maker what the page says."},
	{ConsentNotValid, http.StatusGone, "The app's request was answered, or is older than ten minutes.", "Connect again from the app."},
	{ConsentElsewhere, http.StatusForbidden, "The app's request was begun in another browser.", "Answer it there, or connect again from the app in this one."},
	{ToolNotFound, http.StatusNotFound, "No tool of that vendor and name.", "Search with `find_tool`."},
	{ToolFailed, http.StatusBadGateway, "The tool ran and failed.", "The error sentence is the tool's own."},
	{ToolDenied, http.StatusForbidden, "A person denied this agent the tool, whatever its version.", "Do the task without it. A person can change it on the agent's page."},
	{AwaitingApproval, http.StatusConflict, "The tool can change things and a person has not yet allowed it to this agent.", "Give the person `url`, say what it is for, and call again with the same arguments once they have answered."},
	{ApprovalDeclined, http.StatusForbidden, "A person answered no to this call.", "Do the task without it; do not ask again for the same thing."},
	{ApprovalExpired, http.StatusGone, "Nobody answered within 24 hours, so the ask ran out.", "Call the tool again to ask anew."},
	{AskNotFound, http.StatusNotFound, "No such ask for this person.", "Open the inbox: it lists what waits."},
	{RunNotFound, http.StatusNotFound, "No such run of this agent.", "`run_status` without an id lists the last ten."},
	{ResultNotFound, http.StatusNotFound, "No stored result under that reference; they are kept for 24 hours.", "Call the tool again."},
	{ConnectionAbsent, http.StatusNotFound, "No such connection in this organisation.", "`find_tool` lists the connections in scope."},
	{AwaitingConnection, http.StatusConflict, "A person has to connect the account first, and enters its credential where no agent sees it.", "Give the person `url`, say what it is for, and call again with the same arguments once they have answered."},
	{AwaitingCredential, http.StatusConflict, "A person has to enter the connection's credential.", "Give the person `url`, and call again once they have answered."},
	{AwaitingScope, http.StatusConflict, "The connection is there, and a person has to let this agent use it.", "Give the person `url`, and call again once they have answered."},
	{ConnectionExists, http.StatusConflict, "There is such a connection, and it cannot be used as it is.", "The message says why; `request_credential` with `connectionId` mends it."},
	{ConnectionDeclined, http.StatusForbidden, "A person answered no to the connection, or to entering its credential.", "Do the task without it; do not ask again for the same thing."},
	{ScopeDeclined, http.StatusForbidden, "A person answered no to this agent's use of the connection.", "Do the task without it; do not ask again for the same thing."},
	{ConnectionNotInScope, http.StatusForbidden, "The connection is not among those that this agent may use.", "`request_connection` with its vendor and hosts asks a person for it."},
	{ConnectionRevoked, http.StatusConflict, "A person revoked the connection; its credential is destroyed.", "`request_credential` asks a person to enter it again."},
	{CredentialIncomplete, http.StatusConflict, "Nobody has entered the connection's credential yet.", "`request_credential` asks a person to enter it."},
	{AskUnavailable, http.StatusConflict, "The tool has a question for a person, and the client cannot show one.", "Use a client that declares elicitation."},
	{Timeout, http.StatusGatewayTimeout, "The other side did not answer in time.", "Try again, or with less work in one call."},
	{Cancelled, http.StatusRequestTimeout, "The caller cancelled.", "Nothing."},

	{HostNotPublic, http.StatusForbidden, "The address is private, local or reserved.", "Use a public host. An operator may exempt networks with `GRAFT_EGRESS_ALLOW`."},
	{HostNotInSet, http.StatusForbidden, "The host is not in the connection's set.", "Use a host that the connection declares."},
	{UpstreamUnavailable, http.StatusBadGateway, "The other side could not be reached.", "Try again later; the console shows its health."},
	{UpstreamUnauthorized, http.StatusBadGateway, "The MCP server behind the gateway refused its credential.", "A person mends the upstream's headers or secret on the Upstreams page."},
}

var byWord = func() map[Word]Entry {
	m := make(map[Word]Entry, len(Table))
	for _, e := range Table {
		m[e.Word] = e
	}
	return m
}()
