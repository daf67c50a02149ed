// Package catalog knows every tool an agent could call, whatever its source, and finds the right one for a question.
// A source lists its tools and runs them; what may run is decided in invoke, not here.
//
// What must hold:
//   - A tool's wire name is <vendor>__<name>, fits ^[a-zA-Z0-9_-]{1,64}$, and names one tool only, also without case. It
//     follows from the vendor and the name its source knows, never from what else there is.
//   - Effects (read-only, destructive) are the source's statement about the tool, never a model's.
//   - A schema that is listed has an object at its root, compiles without a look outside itself, and never refuses what
//     its original accepts.
//   - No arguments take longer than about a second to be held to a schema.
//   - Sources never know one another.
package catalog
