package catalog

import (
	"crypto/sha256"
	"encoding/base32"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/getgraft/graft/internal/reason"
)

// MaxWire is how long a wire name may be. The protocol allows 64, and clients put a prefix of their own before it.
const MaxWire = 48

// maxVendor is how long a vendor's name may be.
const maxVendor = 24

// Both tails are "-0" and digits of base 32: as many as hashDigits for a name that was cut or mended, fewer for one that
// only has capitals. No name without a tail ends like one that has one, which is why no two originals meet.
const hashDigits = 10

var (
	legalName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	illegal   = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)
	tail      = regexp.MustCompile(`(?i)-0[0-9a-v]{1,10}$`)
)

// WireName is what the tool that a source calls original is named after <vendor>__, where vendor is one that CheckVendor
// lets through. It follows from the two alone, so a name stays whatever else its source lists and however often we start.
// A name of up to MaxWire with its vendor, in small letters, digits, _ and -, stays as it is. Capitals stay too, with a
// tail that says where they are: to some clients Search and search are one name. Anything else is mended and cut, and
// ends in a hash of the original.
func WireName(vendor, original string) string {
	room := MaxWire
	if vendor != "" {
		room -= len(vendor) + len("__")
	}
	if legalName.MatchString(original) && !tail.MatchString(original) {
		if name := original + capitals(original); len(name) <= room {
			return name
		}
	}
	name := illegal.ReplaceAllString(original, "_")
	name = strings.Trim(name[:min(len(name), max(0, room-len("-0")-hashDigits))], "_-")
	if name == "" {
		name = "tool"
	}
	sum := sha256.Sum256([]byte(original))
	return name + "-0" + strings.ToLower(base32.HexEncoding.EncodeToString(sum[:]))[:hashDigits]
}

// capitals is the tail of a legal name: bit n of its number says that letter n is a capital.
func capitals(name string) string {
	var mask uint64
	for n, c := range []byte(name[:min(len(name), MaxWire)]) {
		if c >= 'A' && c <= 'Z' {
			mask |= 1 << n
		}
	}
	if mask == 0 {
		return ""
	}
	return "-0" + strconv.FormatUint(mask, 32)
}

var vendorName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// reserved are the vendors that are ours.
var reserved = []string{"builtin", "core", "execute", "graft", "graph", "plan", "user", "workbench"}

// CheckVendor refuses, as input_invalid of the field name, what cannot stand before __ in a wire name.
func CheckVendor(name string) error {
	refuse := func(format string, args ...any) error {
		return reason.Refuse(reason.InputInvalid, format, args...).Field("name")
	}
	switch {
	case name == "":
		return refuse("name is missing. Give it a short one, like github.")
	case len(name) > maxVendor:
		return refuse("name has %d characters. Use at most %d.", len(name), maxVendor)
	case !vendorName.MatchString(name):
		return refuse("name %q is not in kebab case. Use small letters and digits, words joined by single hyphens, a letter first, like issue-tracker.", name)
	case slices.Contains(reserved, name):
		return refuse("name %q is kept for Graft's own tools. Choose another.", name)
	}
	return nil
}
