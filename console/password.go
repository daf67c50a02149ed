package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/getgraft/graft/internal/reason"
)

// cost is what argon2id is run with (RFC 9106 §3.1).
type cost struct {
	memory  uint32 // KiB
	time    uint32 // passes
	threads uint8
}

// present is the cost of new hashes: OWASP's first choice for a sign-in, about 20 ms of one core.
var present = cost{memory: 19 << 10, time: 2, threads: 1}

const (
	saltSize = 16
	keySize  = 32
)

// A hashed is a password as it is kept. Its text is a PHC string: $argon2id$v=19$m=19456,t=2,p=1$salt$key.
type hashed struct {
	cost cost
	salt []byte
	key  []byte
}

func (p hashed) String() string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.cost.memory, p.cost.time, p.cost.threads,
		b64.EncodeToString(p.salt), b64.EncodeToString(p.key))
}

var errPHC = errors.New("not an argon2id hash in PHC string form")

// parsePHC reads what String writes, in that form alone, and no cost that a sign-in could not bear.
func parsePHC(s string) (hashed, error) {
	part := strings.Split(s, "$")
	if len(part) != 6 || part[0] != "" || part[1] != "argon2id" || part[2] != "v="+strconv.Itoa(argon2.Version) {
		return hashed{}, errPHC
	}
	var p hashed
	var err error
	if p.cost, err = parseCost(part[3]); err != nil {
		return hashed{}, err
	}
	b64 := base64.RawStdEncoding.Strict()
	salt, err1 := b64.DecodeString(part[4])
	key, err2 := b64.DecodeString(part[5])
	if err1 != nil || err2 != nil || len(salt) < 8 || len(salt) > 64 || len(key) < 16 || len(key) > 64 {
		return hashed{}, errPHC
	}
	p.salt, p.key = salt, key
	if p.String() != s { // line breaks that base64 passes over, leading zeros
		return hashed{}, errPHC
	}
	return p, nil
}

func parseCost(s string) (cost, error) {
	part := strings.Split(s, ",")
	if len(part) != 3 {
		return cost{}, errPHC
	}
	number := func(i int, name string, most uint64) uint64 {
		digits, ok := strings.CutPrefix(part[i], name+"=")
		n, err := strconv.ParseUint(digits, 10, 32)
		if !ok || err != nil || n > most {
			return 0
		}
		return n
	}
	c := cost{
		memory:  uint32(number(0, "m", 256<<10)),
		time:    uint32(number(1, "t", 16)),
		threads: uint8(number(2, "p", 16)),
	}
	if c.memory == 0 || c.time == 0 || c.threads == 0 {
		return cost{}, errPHC
	}
	return c, nil
}

// passwords hashes and compares. Each work takes 19 MiB and a core, so only so many go on at once.
type passwords struct {
	slots chan struct{}
	decoy hashed // no password's: what an unknown address is compared with
}

func newPasswords() *passwords {
	return &passwords{slots: make(chan struct{}, min(runtime.GOMAXPROCS(0), 8)), decoy: hashed{present, random(saltSize), random(keySize)}}
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails; see crypto/rand
	return b
}

// passwordWait is how long somebody waits for their turn.
const passwordWait = 10 * time.Second

// derive waits for its turn and runs argon2id. A password is taken byte for byte as it was typed: trimmed or brought
// to a normal form, it would no longer be the one a password manager keeps.
func (p *passwords) derive(ctx context.Context, password string, c cost, salt []byte, size int) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, passwordWait,
		reason.Refuse(reason.Unavailable, "Many people sign in just now. Try again in a moment."))
	defer cancel()
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return argon2.IDKey([]byte(password), salt, c.time, c.memory, c.threads, uint32(size)), nil
}

// hash makes the PHC string of a new password.
func (p *passwords) hash(ctx context.Context, password string) (string, error) {
	salt := random(saltSize)
	key, err := p.derive(ctx, password, present, salt, keySize)
	return hashed{present, salt, key}.String(), err
}

// A verdict is what a comparison found.
type verdict struct {
	right bool
	old   bool // the hash was made at another cost than today's
}

// compare tells whether password is the one that phc was made from. Without a phc it is wrong, after the same work.
func (p *passwords) compare(ctx context.Context, phc, password string) (verdict, error) {
	want := p.decoy
	if phc != "" {
		var err error
		if want, err = parsePHC(phc); err != nil {
			return verdict{}, fmt.Errorf("read password hash: %w", err)
		}
	}
	got, err := p.derive(ctx, password, want.cost, want.salt, len(want.key))
	if err != nil {
		return verdict{}, err
	}
	same := subtle.ConstantTimeCompare(got, want.key) == 1
	return verdict{right: same && phc != "", old: want.cost != present}, nil
}

// The bounds of a password's length, in characters (NIST SP 800-63B §3.1.1.2).
const (
	passwordLeast = 12
	passwordMost  = 256
)

// checkPassword says what is wrong with a new password, in a sentence for the form, or "". about is what anybody
// knows of the person: their address, their name, their organisation's.
func checkPassword(s string, about ...string) string {
	switch n := utf8.RuneCountInString(s); {
	case n < passwordLeast:
		return fmt.Sprintf("This is %s long. Use at least %d.", characters(n), passwordLeast)
	case n > passwordMost:
		return fmt.Sprintf("This is %s long. Use at most %d.", characters(n), passwordMost)
	}
	folded := fold(s)
	for _, known := range about {
		if folded == fold(known) {
			return "This is something that people know of you. Choose another."
		}
	}
	if common[folded] || distinct(folded) < 5 {
		return "This is one of the first that anybody would try. Choose another."
	}
	return ""
}

func characters(n int) string {
	if n == 1 {
		return "1 character"
	}
	return strconv.Itoa(n) + " characters"
}

// fold leaves out what people vary a password by without making it better: case and what stands between words.
func fold(s string) string {
	return strings.NewReplacer(" ", "", "-", "", "_", "", ".", "").Replace(strings.ToLower(s))
}

func distinct(s string) int {
	seen := map[rune]bool{}
	for _, r := range s {
		seen[r] = true
	}
	return len(seen)
}

// common are passwords of twelve characters or more that head every list of leaked ones, folded, and the famous one.
var common = map[string]bool{
	"123456789012": true, "1234567890123": true, "12345678901234": true, "123456789012345": true, "1234567890123456": true,
	"1234567891011": true, "123456789101112": true, "0123456789012": true, "012345678910": true, "0987654321098": true,
	"123123123123": true, "qwertyuiop123": true, "qwertyuiop12": true, "qwertyuiopasdfgh": true, "qwertyuiopasdfghjkl": true,
	"qwertyuiopasdfghjklzxcvbnm": true, "qwerty123456": true, "qwerty1234567": true, "qwerty12345678": true, "qwertyqwerty": true,
	"1q2w3e4r5t6y": true, "1q2w3e4r5t6y7u8i": true, "1qaz2wsx3edc": true, "1qaz2wsx3edc4rfv": true, "q1w2e3r4t5y6": true,
	"zxcvbnm12345": true, "asdfghjkl123": true, "abcdefghijkl": true, "abcdefghijklmnop": true, "abcdefghijklmnopqrstuvwxyz": true,
	"abc123456789": true, "abcd12345678": true, "a123456789012": true, "password1234": true, "password12345": true,
	"password123456": true, "password1234567890": true, "passwordpassword": true, "password123!": true, "passw0rd1234": true,
	"p@ssw0rd1234": true, "p@ssword1234": true, "mypassword123": true, "changeme1234": true, "changemechangeme": true,
	"letmeinletmein": true, "letmein12345": true, "welcome12345": true, "welcome123456": true, "administrator": true,
	"administrator1": true, "admin1234567": true, "admin12345678": true, "adminadminadmin": true, "iloveyou1234": true,
	"iloveyouiloveyou": true, "football1234": true, "baseball1234": true, "princess1234": true, "sunshine1234": true,
	"trustno1trustno1": true, "correcthorsebatterystaple": true, "thisismypassword": true, "graftgraftgraft": true,
}
