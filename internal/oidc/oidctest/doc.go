// Package oidctest is a provider of sign-in for tests, on loopback, with keys of its own. It speaks real HTTP and makes
// every mistake that a test asks for.
package oidctest
