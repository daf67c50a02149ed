// Package reason is the one table of the words Graft refuses with. Every refusal, on every face of the
// gateway, is a *Refusal that carries one of these words and a sentence for its reader.
//
// What must hold:
//   - A word is never renamed or reused: agents branch on it.
//   - A Refusal's message may be shown to whoever asked. Anything else that goes wrong is an ordinary error;
//     the edge answers it as Internal with a request id and withholds its text.
//   - docs/reasons.md is this table, rendered; a test compares the two.
//   - This package imports nothing of ours.
package reason

//go:generate go run ./gen -o ../../docs/reasons.md
