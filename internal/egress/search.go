package egress

import (
	"bytes"
	"encoding/binary"
	"sync"
)

// A search finds needles in a text. It is Wu and Manber's: two bytes of the text say as a rule that no needle begins at any
// of the next few places. Of three credentials in all their forms it looks for about forty.
type search struct {
	needles needles
	shift   [1 << shiftBits]uint8  // by hash of two bytes: how many places no needle begins at
	bucket  [1 << bucketBits]int16 // by hash of a needle's first bytes: one of them, from 1
	chain   []int16                // by needle: the next of its bucket
	prefix  []uint64               // by needle: its first bytes
	first   [256]bool              // bytes that a needle begins with
}

const (
	shiftBits  = 12
	bucketBits = 8

	keptArena = 64 << 10 // bytes of needles whose memory is used again
)

// searches are searches without needles.
var searches = sync.Pool{New: func() any {
	return &search{needles: needles{arena: make([]byte, 0, 2048), ends: make([]int, 0, 64)}}
}}

// farthest is how far each two bytes let skip that are in no needle.
var farthest = func() (shift [1 << shiftBits]uint8) {
	for i := range shift {
		shift[i] = minNeedle - 1
	}
	return shift
}()

// index gets ready to find the needles.
func (s *search) index() {
	s.shift = farthest
	for i := range s.needles.len() {
		needle := s.needles.at(i)
		s.first[needle[0]] = true
		for j := 1; j < minNeedle; j++ {
			at := &s.shift[pair(needle[j-1], needle[j])]
			*at = min(*at, uint8(minNeedle-1-j))
		}
		s.prefix = append(s.prefix, binary.LittleEndian.Uint64(needle))
		b := &s.bucket[bucketOf(s.prefix[i])]
		s.chain = append(s.chain, *b)
		*b = int16(i + 1)
	}
}

// wipe makes s a search without needles, for the next call.
func (s *search) wipe() {
	clear(s.needles.arena[:cap(s.needles.arena)])
	clear(s.prefix)
	clear(s.first[:])
	clear(s.bucket[:])
	s.shift = farthest
	s.needles.arena, s.needles.ends, s.chain, s.prefix = s.needles.arena[:0], s.needles.ends[:0], s.chain[:0], s.prefix[:0]
	if cap(s.needles.arena) <= keptArena {
		searches.Put(s)
	}
}

func pair(a, b byte) uint { return (uint(a)<<5 ^ uint(b)) & (1<<shiftBits - 1) }

func bucketOf(prefix uint64) uint64 { return prefix * 0x9e3779b97f4a7c15 >> (64 - bucketBits) }

// next returns the first place from which on there is a needle, or may be one when more text comes: its length, the
// longest if there are several, and whether more text may make one, or a longer one. Where there is neither it is the end
// of the text.
func (s *search) next(text []byte, from int, last bool) (at, length int, partial bool) {
	i := from
	for i+minNeedle <= len(text) {
		if n := s.shift[pair(text[i+minNeedle-2], text[i+minNeedle-1])]; n > 0 {
			i += int(n)
			continue
		}
		prefix := binary.LittleEndian.Uint64(text[i:])
		for n := s.bucket[bucketOf(prefix)]; n > 0; n = s.chain[n-1] {
			if s.prefix[n-1] != prefix {
				continue
			}
			needle := s.needles.at(int(n - 1))
			if rest := text[i:]; len(rest) >= len(needle) {
				if len(needle) > length && bytes.Equal(rest[:len(needle)], needle) {
					length = len(needle)
				}
			} else if !last && bytes.HasPrefix(needle, rest) {
				partial = true
			}
		}
		if length > 0 || partial {
			return i, length, partial
		}
		i++
	}
	for ; i < len(text) && !last; i++ {
		if !s.first[text[i]] {
			continue
		}
		for n := range s.needles.len() {
			if bytes.HasPrefix(s.needles.at(n), text[i:]) {
				return i, 0, true
			}
		}
	}
	return len(text), 0, false
}
