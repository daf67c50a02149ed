package console

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/crypto/argon2"
)

// LocalPath is localPath, for its table and its fuzz test.
func LocalPath(s string) string { return localPath(s) }

// CheckPassword is checkPassword.
func CheckPassword(s string, about ...string) string { return checkPassword(s, about...) }

// CanonicalPHC reads a PHC string and writes it again.
func CanonicalPHC(s string) (string, error) {
	p, err := parsePHC(s)
	return p.String(), err
}

// OldHash is password as an earlier Graft might have kept it, at a lower cost.
func OldHash(password string) string {
	c := cost{memory: 8 << 10, time: 1, threads: 1}
	salt := random(saltSize)
	return hashed{c, salt, argon2.IDKey([]byte(password), salt, c.time, c.memory, c.threads, keySize)}.String()
}

// HashWhenFull asks for a hash while every slot is taken.
func HashWhenFull(ctx context.Context, password string) error {
	p := newPasswords()
	for range cap(p.slots) {
		p.slots <- struct{}{}
	}
	_, err := p.hash(ctx, password)
	return err
}

// OneTurn makes every password's work wait until its turn is taken from the channel and given back.
func (h *Handler) OneTurn() chan struct{} {
	h.passwords.slots = make(chan struct{})
	return h.passwords.slots
}

// DecoyCost is what an address that is nobody's is compared at.
func DecoyCost() string { return fmt.Sprint(newPasswords().decoy.cost) }

// PresentCost is what a new password is hashed at.
func PresentCost() string { return fmt.Sprint(present) }

// SetKeepAlive sets the longest silence on a live stream.
func (h *Handler) SetKeepAlive(d time.Duration) { h.keepAlive = d }
