package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// A road is a way to the upstream's tool.
type road struct {
	name  string
	url   string
	pid   int // of the process in the middle; 0 where there is none
	token string
	tool  string
}

// A sample is what one measurement of a road found.
type sample struct {
	perSecond float64
	half      time.Duration // of all calls took no longer
	most      time.Duration // 99 of 100 took no longer
	cpu       time.Duration // per call, of the process in the middle
}

const (
	costCalls = 4000 // of one measurement, over all callers
	costWarm  = 20   // of each caller beforehand
	costLimit = time.Minute
)

// measure makes costCalls calls, callers at a time, each in a session of its own. Every answer is held against what was sent.
func (r road) measure(ctx context.Context, callers int) (s sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, costLimit)
	defer cancel()
	transport := &http.Transport{MaxIdleConnsPerHost: callers, DisableCompression: true}
	defer transport.CloseIdleConnections()
	all := make([]*caller, callers)
	for i := range all {
		all[i] = &caller{road: r, client: &http.Client{Transport: transport}, tag: strconv.Itoa(i)}
	}
	if err := together(all, func(c *caller) error { return errors.Join(c.open(ctx), c.call(ctx, costWarm)) }); err != nil {
		return s, err
	}
	each := costCalls / callers
	before, began := cpuOf(r.pid), time.Now()
	if err := together(all, func(c *caller) error { return c.call(ctx, each) }); err != nil {
		return s, err
	}
	took, cpu := time.Since(began), cpuOf(r.pid)-before
	var times []time.Duration
	for _, c := range all {
		times = append(times, c.times[costWarm:]...)
	}
	slices.Sort(times)
	n := len(times)
	return sample{perSecond: float64(n) / took.Seconds(), half: times[n/2], most: times[n*99/100], cpu: cpu / time.Duration(n)}, nil
}

func together(all []*caller, do func(*caller) error) error {
	var g errgroup.Group
	for _, c := range all {
		g.Go(func() error { return do(c) })
	}
	return g.Wait()
}

// cpuOf is the CPU time that a process has had, to 10 ms (proc(5), /proc/pid/stat, utime and stime).
func cpuOf(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0 // not Linux, or no process
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// A caller is one client with a session of its own.
type caller struct {
	road
	client  *http.Client
	tag     string
	session string
	id      int
	times   []time.Duration
}

func (c *caller) open(ctx context.Context) error {
	_, err := c.post(ctx, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"cost","version":"1"}}}`)
	if err == nil {
		_, err = c.post(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return err
}

func (c *caller) call(ctx context.Context, times int) error {
	for range times {
		c.id++
		text := fmt.Sprintf("%s %d %032d", c.tag, c.id, c.id)
		began := time.Now()
		answer, err := c.post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"text":%q}}}`, c.id, c.tool, text))
		c.times = append(c.times, time.Since(began))
		if err != nil {
			return err
		}
		if want := fmt.Sprintf(`"id":%d,"result":{"content":[{"type":"text","text":%q}]}`, c.id, text); !bytes.Contains(answer, []byte(want)) {
			return fmt.Errorf("%s answered %.300s, want %s", c.name, answer, want)
		}
	}
	return nil
}

func (c *caller) post(ctx context.Context, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("Mcp-Protocol-Version", "2025-06-18")
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s answered %s: %.300s", c.name, resp.Status, answer)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	return answer, err
}
