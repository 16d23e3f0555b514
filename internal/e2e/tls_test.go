//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

// certificates returns the files of an authority and of each daemon's
// certificate, by their names.
func (c *cluster) certificates() map[string]string {
	c.t.Helper()
	template := func(serial int, name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(int64(serial)), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
	}
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			c.t.Fatal(err)
		}
		return key
	}
	sign := func(of, by *x509.Certificate, key, signer *ecdsa.PrivateKey) string {
		der, err := x509.CreateCertificate(rand.Reader, of, by, &key.PublicKey, signer)
		if err != nil {
			c.t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	ca, caKey := template(1, "the authority of a cluster for tests"), newKey()
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage, ca.ExtKeyUsage = true, true, x509.KeyUsageCertSign, nil
	files := map[string]string{"ca.pem": sign(ca, ca, caKey, caKey)}
	for i, d := range c.daemons {
		key := newKey()
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			c.t.Fatal(err)
		}
		files[d.name+".pem"] = sign(template(i+2, d.region+"/"+d.name), ca, key, caKey)
		files[d.name+".key"] = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}
	return files
}
