package oauth

import "time"

// MaxFetches is how many documents are read at once.
const MaxFetches = maxFetches

// Within gives the reading of a document another time than its five seconds.
func (d *Documents) Within(timeout time.Duration) { d.timeout = timeout }
