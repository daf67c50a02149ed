// Package oidctest is a provider of sign-in for tests, on loopback: its own keys, real HTTP, and every fault that a test
// asks for.
package oidctest
