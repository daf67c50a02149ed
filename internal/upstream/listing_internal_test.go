package upstream

import (
	"testing"
	"testing/synctest"
	"time"
)

// A server may tell of a change whenever it is listed. It is listed again all the same, at a pace that its listings set.
func TestAListingIsFollowedByARest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ took, ago, want time.Duration }{
		{time.Millisecond, 0, settle},
		{2 * time.Second, 0, 20 * time.Second},
		{2 * time.Second, 15 * time.Second, 5 * time.Second},
		{2 * time.Second, time.Hour, settle},
		{2 * time.Minute, 0, maxRest},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &line{news: make(chan struct{}, 1)}
			last := lastListing{time.Now().Add(-tt.ago), tt.took}
			l.tell()
			began := time.Now()
			if told := l.wait(t.Context(), time.Hour, last); !told || time.Since(began) != tt.want {
				t.Errorf("%v after a listing of %v: wait() = %v after %v, want true after %v", tt.ago, tt.took, told, time.Since(began), tt.want)
			}
		})
	}
}
