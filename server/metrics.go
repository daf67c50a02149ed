package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what /metrics shows. Labels are bounded: routes are patterns, never paths.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	active   prometheus.Gauge
}

func newMetrics(version string, streams func() int) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "graft_http_request_duration_seconds", Help: "Time from the first byte of a request to the last of its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60},
		}, []string{"method", "route", "status"}),
		active: prometheus.NewGauge(prometheus.GaugeOpts{Name: "graft_http_requests_active", Help: "Requests under way, open streams among them."}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "graft_build_info", Help: "Always 1; the version is the label.", ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	m.registry.MustRegister(m.requests, m.active, build,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "graft_mcp_streams", Help: "Open GET streams of /mcp on this replica."}, func() float64 { return float64(streams()) }),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) observe(method, route string, status int, took time.Duration) {
	m.requests.WithLabelValues(knownMethod(method), route, strconv.Itoa(status)).Observe(took.Seconds())
}

// knownMethod keeps a client from making labels up.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodPatch:
		return m
	}
	return "other"
}

func (m *metrics) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	return mux
}
