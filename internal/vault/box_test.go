package vault_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/getgraft/graft/internal/vault"
)

func newBox(t rapid.TB, purpose string, keys ...*vault.DataKey) *vault.Box {
	t.Helper()
	b, err := vault.NewBox(purpose, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBoxOpensWhatItSealed(t *testing.T) {
	t.Parallel()
	box := newBox(t, "session", newDataKey(t))
	rapid.Check(t, func(t *rapid.T) {
		aad, plain := rapid.SliceOf(rapid.Byte()).Draw(t, "aad"), rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		sealed := box.Seal(aad, plain)
		if got, want := len(sealed), len(plain)+vault.Overhead; got != want {
			t.Fatalf("sealed is %d bytes, want %d", got, want)
		}
		got, err := box.Open(aad, sealed)
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("Open() = %x, %v, want %x", got, err, plain)
		}
		if _, err := box.Open(append(aad, 0), sealed); !errors.Is(err, vault.ErrTampered) {
			t.Fatalf("Open with other aad = %v, want ErrTampered", err)
		}
	})
}

func TestBoxesOfOtherPurposesDoNotOpen(t *testing.T) {
	t.Parallel()
	key := newDataKey(t)
	sealed := newBox(t, "session", key).Seal([]byte("aad"), []byte(canary))
	for _, c := range []struct{ purpose, aad string }{
		{"state", "aad"}, {"sessio", "naad"}, {"sessiona", "ad"}, {"session", ""}, {"session", "aada"},
	} {
		if got, err := newBox(t, c.purpose, key).Open([]byte(c.aad), sealed); !errors.Is(err, vault.ErrTampered) {
			t.Errorf("Box(%q).Open(%q) = %q, %v, want ErrTampered", c.purpose, c.aad, got, err)
		}
	}
	if got, err := key.Open(somewhere, sealed); !errors.Is(err, vault.ErrTampered) {
		t.Errorf("DataKey.Open(boxed) = %v, %v, want ErrTampered", got, err)
	}
}

func TestBoxWithoutPurposeOrKeysIsRefused(t *testing.T) {
	t.Parallel()
	key := newDataKey(t)
	if _, err := vault.NewBox("", key); err == nil {
		t.Error("NewBox without a purpose succeeds")
	}
	if _, err := vault.NewBox("session"); err == nil {
		t.Error("NewBox without keys succeeds")
	}
	box := newBox(t, "session", key)
	sealed := box.Seal(nil, []byte("x"))
	if err := box.SetKeys(); err == nil {
		t.Error("SetKeys without keys succeeds")
	}
	if _, err := box.Open(nil, sealed); err != nil {
		t.Errorf("after a refused SetKeys: %v", err)
	}
}

func TestBoxSealsWithTheNewestKeyAndOpensWithAll(t *testing.T) {
	t.Parallel()
	older, newer := newDataKey(t), newDataKey(t)
	box := newBox(t, "session", older)
	before := box.Seal(nil, []byte("before"))
	if err := box.SetKeys(newer, older); err != nil {
		t.Fatal(err)
	}
	after := box.Seal(nil, []byte("after"))
	if got, err := box.Open(nil, before); err != nil || string(got) != "before" {
		t.Errorf("Open(sealed before) = %q, %v", got, err)
	}
	if got, err := newBox(t, "session", newer).Open(nil, after); err != nil || string(got) != "after" {
		t.Errorf("Open(sealed after) with the newer key alone = %q, %v", got, err)
	}
	if err := box.SetKeys(newer); err != nil {
		t.Fatal(err)
	}
	if _, err := box.Open(nil, before); !errors.Is(err, vault.ErrUnknownKey) {
		t.Errorf("Open(sealed before) without the older key = %v, want ErrUnknownKey", err)
	}
}

func TestBoxKeysChangeUnderUse(t *testing.T) {
	t.Parallel()
	first, second := newDataKey(t), newDataKey(t)
	box := newBox(t, "session", first, second)
	var users sync.WaitGroup
	for i := range 4 {
		users.Go(func() {
			for j := range 500 {
				plain := fmt.Appendf(nil, "%d/%d", i, j)
				got, err := box.Open(nil, box.Seal(nil, plain))
				if err != nil || !bytes.Equal(got, plain) {
					t.Errorf("Open(Seal(%q)) = %q, %v", plain, got, err)
				}
			}
		})
	}
	users.Go(func() {
		for range 500 {
			if err := errors.Join(box.SetKeys(second, first), box.SetKeys(first, second)); err != nil {
				t.Error(err)
			}
		}
	})
	users.Wait()
}

func TestAnyFlippedBitOfABoxIsNoticed(t *testing.T) {
	t.Parallel()
	box := newBox(t, "session", newDataKey(t))
	rapid.Check(t, func(t *rapid.T) {
		sealed := box.Seal([]byte("aad"), rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "plain"))
		bit := rapid.IntRange(0, len(sealed)*8-1).Draw(t, "bit")
		sealed[bit/8] ^= 1 << (bit % 8)
		if got, err := box.Open([]byte("aad"), sealed); !errors.Is(err, vault.ErrSealed) {
			t.Fatalf("Open with bit %d flipped = %x, %v, want ErrSealed", bit, got, err)
		}
	})
}

func FuzzBoxOpen(f *testing.F) {
	older, newer := newDataKey(f), newDataKey(f)
	sealed := newBox(f, "session", older).Seal([]byte("aad"), []byte(canary))
	box := newBox(f, "session", newer, older)
	f.Add([]byte("aad"), sealed)
	f.Add([]byte("aad"), sealed[:vault.Overhead])
	f.Add([]byte("a"), append([]byte("ad"), sealed...))
	f.Add([]byte(nil), []byte{1})
	f.Fuzz(func(t *testing.T, aad, data []byte) {
		got, err := box.Open(aad, data)
		if opens := string(aad) == "aad" && bytes.Equal(data, sealed); (err == nil) != opens {
			t.Errorf("Open(%x, %x) = %x, %v, want only what was sealed to open", aad, data, got, err)
		}
		if err != nil && !errors.Is(err, vault.ErrSealed) {
			t.Errorf("Open(%x, %x) = %v, want an ErrSealed", aad, data, err)
		}
	})
}

// A session id holds about 60 bytes and is opened on every request: at most 2 µs.
func BenchmarkBoxSeal(b *testing.B) {
	box, plain, aad := newBox(b, "session", newDataKey(b)), make([]byte, 60), []byte("org_1")
	b.ReportAllocs()
	for b.Loop() {
		box.Seal(aad, plain)
	}
}

func BenchmarkBoxOpen(b *testing.B) {
	box, aad := newBox(b, "session", newDataKey(b)), []byte("org_1")
	sealed := box.Seal(aad, make([]byte, 60))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := box.Open(aad, sealed); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDataKeySealAndOpen(b *testing.B) {
	key, s := newDataKey(b), vault.NewSecret(make([]byte, 1536))
	b.ReportAllocs()
	for b.Loop() {
		sealed, err := key.Seal(somewhere, s)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := key.Open(somewhere, sealed); err != nil {
			b.Fatal(err)
		}
	}
}
