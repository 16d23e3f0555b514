package secured

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/georld/rld/config"
)

// IssuePeers makes an authority and a certificate for each daemon, named
// REGION/NAME, in an empty folder, as users do: with rld cert.
func IssuePeers(ctx context.Context, rld, dir string, daemons []string) error {
	for _, args := range [][]string{{"init"}, append([]string{"issue"}, daemons...)} {
		args = append([]string{"cert"}, append(args, "--dir", dir)...)
		if out, err := exec.CommandContext(ctx, rld, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("rld %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// PeerTLS returns the setting peer.tls of a daemon with a certificate of
// IssuePeers.
func PeerTLS(dir, region, name string) config.TLS {
	own := filepath.Join(dir, region, name)
	return config.TLS{
		Cert: filepath.Join(own, "tls.crt"), Key: filepath.Join(own, "tls.key"), CA: filepath.Join(own, "ca.crt"),
	}
}
