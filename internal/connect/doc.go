// Package connect makes, mends and uses connections: an agent proposes one, a person enters its credential, and requests go out through
// it. What only a person can settle becomes an ask with a link.
//
// What must hold:
//   - A proposal holds no secret. The same proposal of the same agent is the same ask, and one that is connected already asks nobody.
//   - A connection that exists, was revoked, waits for its credential or is out of the agent's scope is told apart, and each answer says
//     what comes next.
//   - What a person types is sealed for its row before it is kept, and opened in egress alone.
//   - A no stands for nothing: it is told once, and asked again it is a new ask.
package connect
