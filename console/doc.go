// Package console is the people's pages: one file per screen, each a handler that reads what the page shows, hands it
// to a component of web, and on POST does the one thing its button says. The server owns the route table.
//
// What must always hold:
//   - A GET decides nothing and uses nothing up. State changes on POST only. The way back from the provider of sign-in is a
//     GET: it does what a POST of the same browser decided, once.
//   - A person acts as the member they are now: the role is read from the database on every request, and a removed
//     member is out with the next one.
//   - A password or an agent's token is in no error, log line, session or later page. A token is drawn once, as the
//     answer to the POST that made it; a secret of the organisation never.
//   - Opening an ask decides nothing. Whoever may not answer it sees what a missing one looks like.
//   - Each change and each answer that a page makes is told to the audit log, also where the browser does not wait for it.
//   - An invite's link sets no password that is there. What whoever made it sees says nothing of accounts elsewhere.
//   - What ends or destroys something is done by somebody who signed in or confirmed who they are within 15 minutes, and
//     by nobody on a copy of an older cookie.
//   - A passkey signs what we asked this browser for: once, within five minutes, on a page of our origin.
//   - An identity at the provider is issuer and subject, added by whoever is signed in and fresh, or with a new account.
//     Nothing else that the provider says finds or joins an account. Signing in there is as fresh as the provider says.
//   - An unknown address and a wrong password are one answer, after the same work.
//   - Another member's agent, another organisation's and none are one page.
//   - Every page is whole before its first byte is sent, so that an error is a page of its own.
package console
