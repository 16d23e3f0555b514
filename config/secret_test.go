package config

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadSecret(t *testing.T) {
	const good = "9c1fQx7RkT0vLmZe"
	for _, tc := range []struct {
		name, data string
		mode       os.FileMode
		want       string // the secret
		warning    string // part of the only warning
		err        string // part of the error
	}{
		{"as it is", good, 0o600, good, "", ""},
		{"one line end", good + "\n", 0o400, good, "", ""},
		{"one line end of Windows", good + "\r\n", 0o600, good, "", ""},
		{"two line ends", good + "\n\n", 0o600, good + "\n", "", ""},
		{"space is part of it", " " + good + " ", 0o600, " " + good + " ", "", ""},
		{"binary", "\x00\xff" + good, 0o440, "\x00\xff" + good, "", ""},
		{"readable by all", good, 0o644, good, "readable by everybody (mode 0644)", ""},
		{"writable by the group", good, 0o660, "", "", "writable by others (mode 0660): chmod 0600"},
		{"writable by all", good, 0o666, "", "", "writable by others (mode 0666): chmod 0600"},
		{"short", good[1:] + "\n", 0o600, "", "", "the secret is 15 bytes long: 16 to 4096"},
		{"empty", "", 0o600, "", "", "the secret is 0 bytes long: 16 to 4096"},
		{"longest", good + strings.Repeat("x", 4080) + "\r\n", 0o600, good + strings.Repeat("x", 4080), "easy to guess", ""},
		{"long", good + strings.Repeat("x", 4081), 0o600, "", "", "the secret is 4097 bytes long"},
		{"longer than is read", strings.Repeat("x", 5000), 0o600, "", "", "larger than"},
		{"one byte", strings.Repeat("x", 32), 0o600, "", "", "one byte repeated"},
	} {
		path := filepath.Join(t.TempDir(), "secret")
		write(t, path, tc.data)
		if err := os.Chmod(path, tc.mode); err != nil {
			t.Fatal(err)
		}
		got, warnings, err := ReadSecret(path)
		if tc.err != "" {
			if err == nil || got != nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: got %q, %v, want an error with %q", tc.name, got, err, tc.err)
			}
			continue
		}
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: got %q, %v, want %q", tc.name, got, err, tc.want)
		}
		all := strings.Join(warnings, "\n")
		if !strings.Contains(all, tc.warning) || (tc.warning == "") != (all == "") {
			t.Errorf("%s: warnings %q, want one with %q", tc.name, all, tc.warning)
		}
	}
}

// TestGuessableSecrets: the warning names the weakness, and good secrets of
// common generators have none.
func TestGuessableSecrets(t *testing.T) {
	for secret, want := range map[string]string{
		"passwordpassword":                 "common word",
		"My-SecretKey-2025":                "common word",
		"kT9vkT9vkT9vkT9vkT":               "repeated",
		"aabbbaaabababbba":                 "few different characters",
		"0246801357acegikmoqsuwy":          "",
		"23456789lmnopqrstuvw":             "follow each other",
		"correct horse battery staple":     "small letters only",
		"9c1fQx7RkT0vLmZe":                 "",
		"3f8a90c1d27be465a1b0c9d8e7f60512": "",
	} {
		if got := guessable([]byte(secret)); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%q: %q, want %q in it", secret, got, want)
		}
	}
	for range 200 { // a false alarm is possible, and too rare to be seen
		raw := make([]byte, 32)
		rand.Read(raw)
		for _, secret := range []string{string(raw), base64.StdEncoding.EncodeToString(raw), hex.EncodeToString(raw)} {
			if got := guessable([]byte(secret)); got != "" {
				t.Errorf("the random secret %q: %s", secret, got)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "secret")
	write(t, path, "passwordpassword\n")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	_, warnings, err := ReadSecret(path)
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "head -c 32 /dev/urandom") || strings.Contains(warnings[0], "passwordp") {
		t.Errorf("%q, %v: want a warning with the command that makes a good secret, and without the secret", warnings, err)
	}
}

func TestReadSecretMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	_, _, err := ReadSecret(path)
	if err == nil || err.Error() != "cluster.secret_file: "+path+": no such file or directory" {
		t.Errorf("got %v", err)
	}
}
