//go:build e2e

package e2e

import (
	"os/exec"
	"path/filepath"

	"github.com/georld/rld/internal/certs"
)

// certify makes an authority and a certificate for each daemon, as an operator
// without a PKI does.
func (c *cluster) certify() {
	c.t.Helper()
	issue := []string{"cert", "issue", "--dir", c.file("certs")}
	for _, d := range c.daemons {
		issue = append(issue, d.region+"/"+d.name)
	}
	for _, args := range [][]string{{"cert", "init", "--dir", c.file("certs")}, issue} {
		if out, err := exec.Command(binary, args...).CombinedOutput(); err != nil {
			c.t.Fatalf("rld %v: %v\n%s", args, err, out)
		}
	}
}

// certs returns the files with which the daemon proves its name to others.
func (d *daemon) certs() certs.Files {
	dir := filepath.Join(d.cluster.file("certs"), d.region, d.name)
	return certs.Files{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), CA: filepath.Join(dir, "ca.crt")}
}
