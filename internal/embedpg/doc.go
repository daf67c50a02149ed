// Package embedpg runs a private PostgreSQL for the one-command start and for tests: it finds or fetches the binaries, makes
// the cluster, starts it as a child of this process and stops it again. It knows nothing of what is kept in the database.
//
// What always holds:
//   - Nothing of a finished cluster is ever deleted, upgraded or made anew; what cannot be served is an error that says why.
//   - One process holds a data folder at a time; the next start names it. No crash stops the next start.
//   - Postgres never runs as root and listens on no network, only on a socket in a 0700 folder. That folder is the whole of
//     the access control (local connections are trusted), so it is checked at every start.
//   - A folder that embedpg did not make is never given another mode or owner.
//   - Fetched binaries run only if their sha512 is the one in this source.
//
// Linux and macOS. Windows is out of scope: there are no unix uids to drop to and no flock; use a real server there.
package embedpg
