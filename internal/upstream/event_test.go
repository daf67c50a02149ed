package upstream_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/upstream"
)

func TestEventsAreReadAsTheStandardHasThem(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 10_000) // longer than the reader's buffer
	for _, stream := range []struct {
		text string
		want []string
		id   string
	}{
		{"data: a\n\ndata:b\n\n", []string{"a", "b"}, ""},
		{"data: a\r\n\r\ndata:  b\r\n\r\n", []string{"a", " b"}, ""},
		{"\xef\xbb\xbfdata: a\n\n", []string{"a"}, ""},
		{"data: a\ndata: b\ndata\n\n", []string{"a\nb\n"}, ""},
		{": a comment\n\nevent: message\nid: 7\nretry: 10\ndata: a\n\n", []string{"a"}, "7"},
		{"id: 8\n\nid: with\x00nul\ndata: a\n\n", []string{"a"}, "8"},
		{"event: ping\n\nother: x\ndatax: y\n\n", nil, ""},
		{"data: a\n", []string{"a"}, ""}, // ends without an empty line
		{"data: a", []string{"a"}, ""},
		{"data: " + long + "\n\ndata: b\n\n", []string{long, "b"}, ""},
		{"", nil, ""},
	} {
		for _, r := range []io.Reader{strings.NewReader(stream.text), iotest.OneByteReader(strings.NewReader(stream.text))} {
			got, id, err := upstream.ReadEvents(r, 20_000)
			if diff := cmp.Diff(stream.want, got); diff != "" || id != stream.id || !errors.Is(err, io.EOF) {
				t.Errorf("%.40q: id %q, %v, events (-want +got):\n%s", stream.text, id, err, diff)
			}
		}
	}
	for _, text := range []string{"data: " + long + "\n\n", strings.Repeat("data: xxx\n", 1000), strings.Repeat("x", 100_000)} {
		got, _, err := upstream.ReadEvents(strings.NewReader(text), 1000)
		if err == nil || errors.Is(err, io.EOF) || len(got) > 0 {
			t.Errorf("%.20q: %d events, %v, want that it is too large", text, len(got), err)
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("data: a\n\nid: 1\nretry: 5\ndata: b\r\n\r\n: c\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		const limit = 64
		whole, id, err := upstream.ReadEvents(strings.NewReader(text), limit)
		bytewise, id2, err2 := upstream.ReadEvents(iotest.OneByteReader(strings.NewReader(text)), limit)
		if diff := cmp.Diff(whole, bytewise); diff != "" || id != id2 || (err == nil) != (err2 == nil) {
			t.Errorf("read by the byte it is another (-whole +bytewise):\n%s", diff)
		}
		for _, d := range whole {
			if len(d) > 2*limit {
				t.Errorf("an event has %d bytes of data, over the limit of %d", len(d), limit)
			}
		}
	})
}
