// Package egress is the only way out of Graft: a Client sends every request to a vendor, an upstream or a model.
// It goes to a host of the set that the request names, and a credential joins it here, for the length of one call.
//
// What must hold:
//   - No connection is made to an address that is not public, unless the operator exempted its network. The
//     address judged is the one that is connected to, so what a name resolved to before does not matter.
//   - A request goes to a place of its Hosts, or nowhere. Below a path it stays whatever a server makes of dots, slashes and
//     their escapes; otherwise the URL's path goes out as it is written.
//   - Redirects are returned, unless the request says to follow them. Each hop is decided as the request was, none goes from
//     https to http or does something again, and the credential goes to no other origin than the request's own, nor back to it
//     from another.
//   - A secret is revealed in this package only, after host and address policy have passed, and a caller's own
//     Authorization, Proxy-Authorization and Cookie headers are never sent. Nor are headers of a connection, of a proxy on the
//     way to us, or of our own trace.
//   - What was revealed for a call, or derived from that, is taken out of its answer, also where a credential was typed as a
//     whole header: out of headers, and out of every body whatever its type, as it is and as URLs, JSON, HTML, base64 and hex
//     hold it, across the borders of reads too. No more is held back of a stream than may be the beginning of a secret. Secrets
//     of less than 8 bytes are not looked for. The forms are wiped when the call ends, and nothing can be read then.
//   - A body that is compressed although that was not asked for is decompressed once. One that cannot be is passed on as it is,
//     or refused if a credential went out, which nobody could find in it.
//   - Nothing is unbounded: time, bodies, packed and unpacked, headers. Over a limit is an error, never a shorter answer. A
//     stream without a deadline is one whose caller said so, and ends with its ctx.
//   - An error says whether the request may have been carried out (ErrSent), so that nothing is done twice.
//   - An error holds no query, user information, header value or secret, and no text of the other side.
package egress
