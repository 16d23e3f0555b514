//go:build e2e

package e2e

import (
	"crypto/x509"

	"github.com/georld/rld/internal/certs/certstest"
)

// certificates returns the files of an authority and of each daemon's
// certificate, by their names.
func (c *cluster) certificates() map[string]string {
	c.t.Helper()
	ca := certstest.New(c.t, nil)
	files := map[string]string{"ca.pem": string(ca.PEM())}
	for _, d := range c.daemons {
		cert, key := ca.Issue(c.t, func(x *x509.Certificate) { x.Subject.CommonName = d.region + "/" + d.name })
		files[d.name+".pem"], files[d.name+".key"] = string(cert), string(key)
	}
	return files
}
