// Package web is what the console looks like: templ components over plain view
// structs, one stylesheet, one script and one mark, embedded. It knows nothing
// of the rest of Graft, so a page can be drawn from any values.
//
// What must always hold:
//   - it imports nothing of ours, and no component reads anything but its arguments;
//   - every page is right under `default-src 'self'`: no inline script, style or
//     handler, no style attribute, nothing fetched from elsewhere;
//   - every page can be used without script and with the keyboard alone;
//   - a page has one h1, one main and at most one primary button;
//   - a fragment that a live stream sends has one root element, and its id is
//     the one the page already carries.
package web
