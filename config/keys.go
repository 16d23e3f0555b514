package config

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
)

// Bounds on a file of keys.
const (
	maxSwimKeysBytes = 16 << 10
	maxSwimKeys      = 8
)

// Keyring is the content of a file of membership keys.
type Keyring struct {
	// Keys are in the order of the file: the first encrypts, all of them
	// decrypt. Lines are their lines, counted from 1.
	Keys  [][]byte
	Lines []int
	// Data is the file itself.
	Data []byte
}

// ReadKeys reads the keys of the membership: one a line in base64, each of 16,
// 24 or 32 bytes. A # begins a comment, and empty lines are ignored. The first
// key encrypts, all of them decrypt. To rotate, add the new key below on all
// daemons, then move it up on all, then remove the old one, as rld keyring
// does.
//
// The permissions of the file are checked as by ReadSecret. Errors name file
// and line and do not contain keys.
func ReadKeys(path string) (k Keyring, warnings []string, err error) {
	data, warnings, err := readPrivate(keysSetting, path, maxSwimKeysBytes)
	if err != nil {
		return Keyring{}, nil, err
	}
	if k, err = ParseKeys(path, data); err != nil {
		return Keyring{}, nil, err
	}
	return k, warnings, nil
}

const keysSetting = "swim.keys_file"

// ParseKeys returns the keys of a file. Errors name path and line. The result
// refers to data.
func ParseKeys(path string, data []byte) (Keyring, error) {
	if len(data) > maxSwimKeysBytes {
		return Keyring{}, fmt.Errorf("%s: %s: is %d bytes long: take comments out, at most %d are read", keysSetting, path, len(data), maxSwimKeysBytes)
	}
	out := Keyring{Data: data}
	first := make(map[string]int) // the line of each key
	number := 0
	for line := range strings.SplitSeq(string(data), "\n") {
		number++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, problem := decodeKey(line)
		if at, twice := first[string(key)]; problem == "" && twice {
			problem = fmt.Sprintf("the key of line %d again: take one out", at)
		}
		if problem == "" && len(out.Keys) == maxSwimKeys {
			problem = fmt.Sprintf("more than %d keys: take old ones out", maxSwimKeys)
		}
		if problem != "" {
			return Keyring{}, fmt.Errorf("%s: %s:%d: %s", keysSetting, path, number, problem)
		}
		first[string(key)] = number
		out.Keys, out.Lines = append(out.Keys, key), append(out.Lines, number)
	}
	if len(out.Keys) == 0 {
		return Keyring{}, fmt.Errorf("%s: %s: holds no key: give one a line, "+
			"such as from head -c 32 /dev/urandom | base64", keysSetting, path)
	}
	return out, nil
}

// decodeKey returns a key, or the fault and its remedy.
func decodeKey(text string) (key []byte, problem string) {
	const right = "such as from head -c 32 /dev/urandom | base64"
	key, err := base64.StdEncoding.Strict().DecodeString(text)
	switch {
	case err != nil:
		return nil, "is no base64: give one key a line, " + right
	case len(key) != 16 && len(key) != 24 && len(key) != 32:
		return nil, fmt.Sprintf("the key is %d bytes long: 16, 24 or 32, %s", len(key), right)
	case bytes.Count(key, key[:1]) == len(key):
		return nil, "the key is one byte repeated: make one with head -c 32 /dev/urandom | base64"
	}
	return key, ""
}
