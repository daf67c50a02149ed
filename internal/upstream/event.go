package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"
)

// events reads a stream of server-sent events (WHATWG HTML §9.2).
type events struct {
	r     *bufio.Reader
	limit int // bytes of data that one event may have

	lastID string        // the id to go on from; "" where the server gave none
	retry  time.Duration // how long the server wants us to wait before we do
	data   []byte
	fresh  bool // nothing was read yet, so that a byte order mark may stand here
}

var errEventTooLarge = errors.New("an event is too large")

// readers are kept for reuse: a stream often carries one short event.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 4<<10) }}

func newEvents(r io.Reader, limit int) *events {
	b := readers.Get().(*bufio.Reader)
	b.Reset(r)
	return &events{r: b, limit: limit, fresh: true}
}

// close gives back what is reused. The events must not be read after it.
func (e *events) close() {
	e.r.Reset(nil)
	readers.Put(e.r)
}

// next returns the data of the next event that has any, and its type. The data is good until the next call. An event that
// the stream ends in is returned all the same: what reads it can tell whether it is whole.
func (e *events) next() (kind string, data []byte, err error) {
	e.data = e.data[:0]
	has := false
	for {
		line, err := e.line()
		if err != nil {
			if has && errors.Is(err, io.EOF) {
				return kind, bytes.TrimSuffix(e.data, []byte("\n")), nil
			}
			return "", nil, err
		}
		if len(line) == 0 {
			if has {
				return kind, bytes.TrimSuffix(e.data, []byte("\n")), nil
			}
			kind = ""
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if len(e.data)+len(value) > e.limit {
				return "", nil, errEventTooLarge
			}
			e.data = append(append(e.data, value...), '\n')
			has = true
		case "event":
			kind = string(value)
		case "id":
			if len(value) <= 1024 && bytes.IndexByte(value, 0) < 0 {
				e.lastID = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// line returns the next line without its end, LF or CR LF: nobody sends a CR alone. It is good until the next call.
func (e *events) line() ([]byte, error) {
	line, err := e.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			if len(long) > e.limit+64 {
				return nil, errEventTooLarge
			}
			line, err = e.r.ReadSlice('\n')
			long = append(long, line...)
		}
		line = long
	}
	if err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)) {
		return nil, err
	}
	if e.fresh {
		e.fresh = false
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

// A pace lets a number of messages through at once and then so many a second. A server that floods waits, not we: what is
// not read from its connection it cannot go on writing.
type pace struct {
	left float64
	at   time.Time
}

const (
	paceBurst  = 1000
	paceSecond = 1000
)

// wait counts one message, and waits where there were too many.
func (p *pace) wait(ctx context.Context) {
	if p.at.IsZero() {
		p.left, p.at = paceBurst, time.Now()
	}
	if p.left--; p.left >= 0 {
		return
	}
	now := time.Now()
	p.left, p.at = min(p.left+paceSecond*now.Sub(p.at).Seconds(), paceBurst), now
	if p.left >= 0 {
		return
	}
	pause(ctx, 50*time.Millisecond)
}

// pause waits that long, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
