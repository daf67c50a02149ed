package upstream

import "io"

// ReadEvents reads a stream to its end, and returns the data of its events and the id to go on from.
func ReadEvents(r io.Reader, limit int) (data []string, lastID string, err error) {
	e := newEvents(r, limit)
	defer e.close()
	for {
		_, d, err := e.next()
		if err != nil {
			return data, e.lastID, err
		}
		data = append(data, string(d))
	}
}
