package embedpg

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

const (
	tailLines = 12
	lineBytes = 4 << 10
)

// journal takes what postgres says: each line to the log, the last ones into errors.
type journal struct {
	log  *slog.Logger
	mu   sync.Mutex
	rest []byte
	tail []string
}

// Write is an io.Writer for exec.Cmd; it never fails.
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rest = append(j.rest, p...)
	for {
		line, rest, found := bytes.Cut(j.rest, []byte("\n"))
		if !found && len(line) < lineBytes {
			return len(p), nil
		}
		j.line(string(line[:min(len(line), lineBytes)]))
		j.rest = rest
	}
}

func (j *journal) line(text string) {
	severity, _, _ := strings.Cut(text, ":")
	switch severity {
	case "ERROR": // a query's: its sender has been told, and it may quote values that no log may have
		return
	case "WARNING", "PANIC":
		j.log.Warn("postgres", "line", text)
	default:
		j.log.Debug("postgres", "line", text)
	}
	j.tail = append(j.tail, text)
	j.tail = j.tail[max(0, len(j.tail)-tailLines):]
}

// last is the last lines postgres wrote.
func (j *journal) last() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(append(j.tail, string(j.rest)), "\n")
}
