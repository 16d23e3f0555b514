package config

import (
	"bytes"
	"fmt"
	"os"
)

// Bounds on a cluster secret.
const (
	MinSecretBytes = 16
	maxSecretBytes = 4 << 10
)

// ReadSecret reads a cluster secret: the bytes of the file as they are, but
// for one line end at its end, which editors and echo leave there. It must be
// 16 to 4096 bytes long and not one byte repeated. A file that others may write is
// refused, since who chooses the secret can aim at the counters of others;
// one that others may read is warned of.
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
	return data, warnings, nil
}

// readPrivate reads a file that is for this daemon's eyes. It is an error if
// others may write it, and a warning if everybody may read it.
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
