package config

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// Bounds on a cluster secret.
const (
	MinSecretBytes = 16
	maxSecretBytes = 4 << 10
)

// ReadSecret reads a cluster secret: the bytes of the file without one line end
// at its end. It must have 16 to 4096 bytes that are not all equal. A file that
// others can write is rejected, since with a chosen secret they could collide
// with the counters of others. A file that others can read and a secret that is
// easy to guess give a warning.
func ReadSecret(path string) (secret []byte, warnings []string, err error) {
	const setting = "cluster.secret_file"
	data, warnings, err := readPrivate(setting, path, maxSecretBytes+2)
	if err != nil {
		return nil, nil, err
	}
	data = bytes.TrimSuffix(bytes.TrimSuffix(data, []byte("\n")), []byte("\r"))
	switch {
	case len(data) < MinSecretBytes || len(data) > maxSecretBytes:
		return nil, nil, fmt.Errorf("%s: %s: the secret is %d bytes long: %d to %d, "+
			"such as from head -c 32 /dev/urandom | base64", setting, path, len(data), MinSecretBytes, maxSecretBytes)
	case bytes.Count(data, data[:1]) == len(data):
		return nil, nil, fmt.Errorf("%s: %s: the secret is one byte repeated: "+
			"make one with head -c 32 /dev/urandom | base64", setting, path)
	}
	if why := guessable(data); why != "" {
		warnings = append(warnings, fmt.Sprintf("%s: %s: the secret is easy to guess: %s. With it the keys of "+
			"callers can be guessed from counters: make one with head -c 32 /dev/urandom | base64", setting, path, why))
	}
	return data, warnings, nil
}

// readPrivate reads a file for this daemon only. It returns an error if others
// can write it, and a warning if everyone can read it.
func readPrivate(setting, path string, limit int64) (data []byte, warnings []string, err error) {
	data, err = readRegular(path, limit)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", setting, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", setting, pathProblem(path, err))
	}
	mode := info.Mode().Perm()
	if mode&0o022 != 0 {
		return nil, nil, fmt.Errorf("%s: %s: is writable by others (mode %04o): chmod 0600 it", setting, path, mode)
	}
	if mode&0o004 != 0 {
		warnings = append(warnings, fmt.Sprintf("%s: %s is readable by everybody (mode %04o): "+
			"chmod 0600 it, or set defaultMode: 0440 on a Kubernetes secret", setting, path, mode))
	}
	return data, warnings, nil
}

// fewBytes is the number of different bytes below which a secret is easy to
// guess. 16 random bytes in hexadecimal digits have 14 on average.
const fewBytes = 9

// commonWords are words of 6 and more letters that people make secrets of.
// Random ones have none of them.
var commonWords = []string{
	"password", "passw0rd", "passwort", "changeme", "change-me", "letmein", "welcome", "qwerty", "123456", "abcdef",
	"secret", "s3cret", "default", "example", "cluster", "dragon", "monkey", "administrator",
}

// guessable returns why a secret is easy to guess, "" for one that does not
// seem to be. It knows the common mistakes, and is no proof of a good secret.
func guessable(secret []byte) string {
	var seen [256]bool
	different, neighbors, plain := 0, 0, true
	for i, b := range secret {
		if !seen[b] {
			seen[b] = true
			different++
		}
		if i > 0 {
			if d := int(b) - int(secret[i-1]); -1 <= d && d <= 1 {
				neighbors++
			}
		}
		plain = plain && ('a' <= b && b <= 'z' || strings.IndexByte(" -_.,", b) >= 0)
	}
	lower := bytes.ToLower(secret)
	for _, w := range commonWords {
		if bytes.Contains(lower, []byte(w)) {
			return "it has a common word in it"
		}
	}
	switch {
	case repeats(secret):
		return "it is a shorter text repeated"
	case different < fewBytes:
		return "it has few different characters"
	case 2*neighbors > len(secret):
		return "its characters follow each other in the alphabet"
	case plain:
		return "it has small letters only, as words do"
	}
	return ""
}

// repeats reports whether a text is a shorter one, again and again.
func repeats(text []byte) bool {
	for n := 1; n <= len(text)/2; n++ {
		if bytes.Equal(text[n:], text[:len(text)-n]) {
			return true
		}
	}
	return false
}
