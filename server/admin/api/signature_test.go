package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/server/admin/api"
)

// TestSignature: a signature holds for its secret, path, body and time alone.
func TestSignature(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	value := api.Sign([]byte("secret"), "/init", []byte("{}"), now)
	for _, tc := range []struct {
		name, secret, value, path, body string
		after                           time.Duration
		want                            string
	}{
		{"same", "secret", value, "/init", "{}", 0, ""},
		{"a bit later", "secret", value, "/init", "{}", time.Minute, ""},
		{"a bit earlier", "secret", value, "/init", "{}", -time.Minute, ""},
		{"too late", "secret", value, "/init", "{}", time.Minute + time.Second, "signed 1m1s ago"},
		{"too early", "secret", value, "/init", "{}", -time.Hour, "signed -1h0m0s ago"},
		{"other secret", "secreu", value, "/init", "{}", 0, "is wrong"},
		{"other path", "secret", value, "/recover", "{}", 0, "is wrong"},
		{"other body", "secret", value, "/init", "{ }", 0, "is wrong"},
		{"other time", "secret", strings.Replace(value, "18", "19", 1), "/init", "{}", 0, "is wrong"},
		{"short", "secret", value[:len(value)-2], "/init", "{}", 0, "is wrong"},
		{"no sum", "secret", value[:10], "/init", "{}", 0, "is wrong"},
		{"no time", "secret", value[10:], "/init", "{}", 0, "malformed"},
		{"no hex", "secret", value + "x", "/init", "{}", 0, "malformed"},
	} {
		err := api.Verify([]byte(tc.secret), tc.value, tc.path, []byte(tc.body), now.Add(tc.after))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}
