package config

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadKeys(t *testing.T) {
	k16, k24, k32 := "0123456789abcdef", "0123456789abcdef01234567", "0123456789abcdef0123456789abcdef"
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	var tooMany strings.Builder
	for i := range maxSwimKeys + 1 {
		tooMany.WriteString(b64(k16[:15]+string([]byte{'A' + byte(i)})) + "\n")
	}
	for _, tc := range []struct {
		name, data string
		mode       os.FileMode
		want       []string
		warning    string // part of the only warning
		err        string // the end of the error, after the path
	}{
		{"one", b64(k32) + "\n", 0o600, []string{k32}, "", ""},
		{"all lengths, in order", b64(k24) + "\n" + b64(k16) + "\n" + b64(k32), 0o440, []string{k24, k16, k32}, "", ""},
		{"comments", "# new\r\n" + b64(k32) + "  # of May\r\n\r\n\t" + b64(k16) + "\r\n", 0o600, []string{k32, k16}, "", ""},
		{"readable by all", b64(k16), 0o644, []string{k16}, "readable by everybody (mode 0644)", ""},
		{"writable by all", b64(k16), 0o666, nil, "", ": is writable by others (mode 0666): chmod 0600 it"},
		{"empty", "", 0o600, nil, "", ": holds no key: give one a line, such as from head -c 32 /dev/urandom | base64"},
		{
			"comments alone", "# none\n\n", 0o600, nil, "",
			": holds no key: give one a line, such as from head -c 32 /dev/urandom | base64",
		},
		{
			"no base64", b64(k16) + "\n\nsecret-secret!\n", 0o600, nil, "",
			":3: is no base64: give one key a line, such as from head -c 32 /dev/urandom | base64",
		},
		{
			"two on a line", b64(k16) + " " + b64(k24), 0o600, nil, "",
			":1: is no base64: give one key a line, such as from head -c 32 /dev/urandom | base64",
		},
		{
			"length", "\n" + b64(k32[:20]), 0o600, nil, "",
			":2: the key is 20 bytes long: 16, 24 or 32, such as from head -c 32 /dev/urandom | base64",
		},
		{
			"one byte", b64(strings.Repeat("x", 32)), 0o600, nil, "",
			":1: the key is one byte repeated: make one with head -c 32 /dev/urandom | base64",
		},
		{
			"twice", b64(k16) + "\n" + b64(k32) + "\n" + b64(k16), 0o600, nil, "",
			":3: the key of line 1 again: take one out",
		},
		{"too many", tooMany.String(), 0o600, nil, "", ":9: more than 8 keys: take old ones out"},
		{
			"too large", strings.Repeat("#", maxSwimKeysBytes+1), 0o600, nil, "",
			": is larger than the 16384 bytes that are read at most",
		},
	} {
		path := filepath.Join(t.TempDir(), "keys")
		write(t, path, tc.data)
		if err := os.Chmod(path, tc.mode); err != nil {
			t.Fatal(err)
		}
		ring, warnings, err := ReadKeys(path)
		keys := ring.Keys
		if tc.err != "" {
			if want := "swim.keys_file: " + path + tc.err; err == nil || keys != nil || err.Error() != want {
				t.Errorf("%s: got %q, %v, want %s", tc.name, keys, err, want)
			}
			continue
		}
		var got []string
		for _, k := range keys {
			got = append(got, string(k))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", tc.name, err, diff)
		}
		all := strings.Join(warnings, "\n")
		if !strings.Contains(all, tc.warning) || (tc.warning == "") != (all == "") {
			t.Errorf("%s: warnings %q, want one with %q", tc.name, all, tc.warning)
		}
	}
}

// Whatever a file holds, ParseKeys returns keys of usable lengths or an error
// that names the file.
func FuzzKeys(f *testing.F) {
	f.Add("MDEyMzQ1Njc4OWFiY2RlZg==\n# x\n")
	f.Add("\xff\x00==\r\r\n")
	f.Fuzz(func(t *testing.T, data string) {
		ring, err := ParseKeys("keys", []byte(data))
		keys := ring.Keys
		if err != nil {
			if keys != nil || !strings.HasPrefix(err.Error(), "swim.keys_file: keys:") {
				t.Fatalf("got %v and %v", keys, err)
			}
			return
		}
		if len(keys) == 0 || len(keys) > maxSwimKeys || len(ring.Lines) != len(keys) {
			t.Errorf("%d keys on the lines %v", len(keys), ring.Lines)
		}
		for _, k := range keys {
			if n := len(k); n != 16 && n != 24 && n != 32 {
				t.Errorf("a key of %d bytes", n)
			}
		}
	})
}
