package audit

// What somebody can work out who has the database and this code.
var (
	Hash           = hash
	CheckpointHash = checkpointHash
)
