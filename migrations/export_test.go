package migrations

// Provider is what Up runs.
var Provider = provider
