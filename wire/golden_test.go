package wire

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/gossip"
)

// goldenFrames are frames byte by byte, from the incarnation of 8 bytes 11 to
// that of 8 bytes 22.
var goldenFrames = []struct {
	name    string
	message gossip.Message
	frame   string
}{
	{"answer without cells", answerOnly(), `
		05 d27743d6                               # version, checksum
		04 ffff7f                                 # flags: echo; nonce 2^21-1
		ffff7f e0d403                             # echo 2^21-1, held for 60,000
		12 b960 e05d                              # flags: answers, views; hi 12345; ack 12000
		ca01                                      # own region 101 ms old, no others
	`},
	{"one known cell", knownCells(1, gossip.Daemon), `
		05 a7b96c6d                               # version, checksum
		00 ffff7f                                 # no flags; nonce 2^21-1
		21 b960 01                                # flags: changed, cells; hi 12345; one version changed
		00                                        # group of one cell, a daemon's, the sender's
		9dcec3ad077dec6c                          # key
		a910                                      # ref 1025 + 64 * (17-1) + 40: place 40 of description 17
		9006                                      # 784 hits
	`},
	{"short and whole keys", shortKeys(), `
		05 c0221c0a                               # version, checksum
		00 ffff7f                                 # no flags; nonce 2^21-1
		21 b960 04                                # flags: changed, cells; hi 12345; four versions changed
		50                                        # several cells of a daemon, the sender's, with short keys
		08 02                                     # 4 cells of one description; 2 short keys
		3bf9 9dce                                 # short keys
		730ad2626b1c2f8e a9735a3cfbe36cef         # keys
		a910                                      # ref 1025 + 64 * (17-1) + 40: place 40 of description 17
		29 9006 8401 bc03                         # 41, 784, 132 and 444 hits
	`},
	{"something of everything", example(), `
		05 4e2ce79c                               # version, checksum
		1c 8084af5f                               # flags: echo, rules, stamp; nonce 200,000,000
		80d7cc5a e0d403                           # echo 190,000,000, held for 60,000
		3333333333333333                          # hash of the rules
		030000505c18a301                          # stamp
		bf 07                                     # flags: all but skipped; then refused, digests, repair
		b960 2d e05d 46                           # hi 12345; 45 versions changed; ack 12000; unsent for 70 ms
		f101 02                                   # own region 120 ms old, and 2 others:
		02 aaaa000000000000 ac02                  # new incarnation 2, 300 ms old
		03 bbbb000000000000 00                    # new incarnation 3, 0 ms old
		b0 07                                     # several daemon cells of the sender, more groups; columns:
		07                                        # 3 cells of several descriptions
		02 0000000000000001 0000000000000002      # 2 keys
		00 01                                     # one cell of the first, one beyond one of the second
		00 00 02                                  # refs: a new description, another new one, row 1
		00 00 d00f                                # windows: distances 0, 0, 1000
		ac02 01 03                                # admitted: 300, 1, 3
		02 00 00                                  # refunded: 2, 0, 0
		66 0700000000000000 01 01 e0a3e185e368    # min, carry in windows, rule; rule, 1 min, carry 1, window
		51 0800000000000000 01 fec7ceb40d         # s, regional, rule; rule, 1 s, window
		89 20 02 0000000000000001 01 8407 0f      # a region sum of incarnation 2, with rates; key, row 0, 900, 15/s
		02                                        # 2 refused cells:
		00 01 0000000000000001 a0cde885e368       # daemon, too far ahead; receiver; key; window
		08 01 0000000000000002 bfa907             # daemon, no room; receiver; key; distance of the window
		02 00 0100000000000000 08 0200000000000000 # 2 digests: of bucket 0, and of the 8th after the next one
		02 03 00                                  # 2 buckets to repair: 3, and the next one
	`},
}

// shortKeys is a message with cells of four keys, two of which the receiver
// knows.
func shortKeys() gossip.Message {
	m := knownCells(4, gossip.Daemon)
	for i := range m.Cells {
		c := &m.Cells[i]
		c.Short = i%2 == 0
		c.Key = keyInFrame(c)
	}
	slices.SortFunc(m.Cells, func(a, b gossip.Cell) int { return compareCells(&a, &b) })
	return m
}

// golden returns the bytes of a frame without its comments.
func golden(t *testing.T, lines string) []byte {
	t.Helper()
	var text strings.Builder
	for line := range strings.Lines(lines) {
		digits, _, _ := strings.Cut(line, "#")
		text.WriteString(strings.Join(strings.Fields(digits), ""))
	}
	frame, err := hex.DecodeString(text.String())
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// TestGolden: the bytes of a frame do not change within a version.
func TestGolden(t *testing.T) {
	for _, test := range goldenFrames {
		want := golden(t, test.frame)
		if frame := mustEncode(t, test.message); !bytes.Equal(frame, want) {
			t.Errorf("%s: frame\n %x, want\n %x", test.name, frame, want)
		}
		got, err := decodeFrame(want)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if d := cmp.Diff([]gossip.Message{test.message}, got); d != "" {
			t.Errorf("%s: message (-sent +received):\n%s", test.name, d)
		}
	}
}
