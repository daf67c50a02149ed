// Package egress is the only way out of Graft: a Client sends every request to a vendor, an upstream or a model.
// It goes to a host of the set that the request names, and a credential joins it here, for the length of one call.
//
// What must hold:
//   - No connection is made to an address that is not public, unless the operator exempted its network. The
//     address judged is the one that is connected to, so what a name resolved to before does not matter.
//   - A request goes to an origin of its Hosts, or nowhere. Redirects are returned, not followed.
//   - A secret is revealed in this package only, after host and address policy have passed, and a caller's own
//     Authorization, Proxy-Authorization and Cookie headers are never sent.
//   - Nothing is unbounded: time, bodies, headers. Over a limit is an error, never a shorter answer. A stream without a
//     deadline is one whose caller said so, and ends with its ctx.
//   - An error says whether the request may have been carried out (ErrSent), so that nothing is done twice.
//   - An error holds no query, user information, header value or secret, and no text of the other side.
package egress
