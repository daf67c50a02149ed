package store

import "github.com/jackc/pgx/v5/pgxpool"

// Pool is what lock tests look at from behind.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Statements that tests look at the plans of.
const (
	LookOAuthToken = lookOAuthToken
	RotateToken    = rotateToken
)

// The bounds that tests run against.
const (
	Tries      = tries
	MaxEnded   = maxEnded
	ReapAtOnce = reapAtOnce
)
