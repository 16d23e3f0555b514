package valid

import (
	"strings"
	"testing"
)

func TestTexts(t *testing.T) {
	for value, want := range map[string]string{
		"":       "name of 0 bytes, must be 1 to 4",
		"abcde":  "name of 5 bytes, must be 1 to 4",
		"\xff":   "is not UTF-8",
		"\x1b[2": "cannot be printed",
		"é世"[:2]: "",
		"a b":    "",
	} {
		err := Texts(Text{"build", "", 0, 1}, Text{"name", value, 1, 4})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", value, err, want)
		}
	}
}

func TestAddress(t *testing.T) {
	for addr, want := range map[string]string{
		"h:1": "", "[::1]:65535": "",
		"h": "is not host:port", ":1": "is not host:port", "::1:1": "is not host:port",
		"h:0": "1 to 65535", "h:65536": "1 to 65535", "h:http": "1 to 65535",
	} {
		err := Address("seed", addr)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", addr, err, want)
		}
	}
}
