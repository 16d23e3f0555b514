package web

import (
	"fmt"
	"net/http"
	"strings"
)

// pairs walks a query before it is percent-decoded. The order of parameters
// matters here, which is why url.ParseQuery would not do.
type pairs struct{ rest string }

// next returns the next name and value as written, skipping empty pairs. A
// pair without '=' has an empty value.
func (p *pairs) next() (name, value string, ok bool) {
	for p.rest != "" {
		var pair string
		pair, p.rest, _ = strings.Cut(p.rest, "&")
		if pair != "" {
			name, value, _ = strings.Cut(pair, "=")
			return name, value, true
		}
	}
	return "", "", false
}

// unescape decodes percent-escapes, and '+' as a space. It allocates only
// when there is something to decode.
func unescape(s string) (string, error) {
	at := strings.IndexAny(s, "%+")
	if at < 0 {
		return s, nil
	}
	b := make([]byte, at, len(s))
	copy(b, s)
	for i := at; i < len(s); i++ {
		switch {
		case s[i] == '+':
			b = append(b, ' ')
		case s[i] != '%':
			b = append(b, s[i])
		case i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			b = append(b, unhex(s[i+1])<<4|unhex(s[i+2]))
			i += 2
		default:
			return "", fmt.Errorf("%q is not a percent-escape; a percent sign is written %%25", s[i:min(i+3, len(s))])
		}
	}
	return string(b), nil
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// checkLength refuses a query that is too long to be looked at.
func checkLength(raw string) error {
	if len(raw) <= MaxQueryBytes {
		return nil
	}
	return &problem{http.StatusRequestURITooLong, codeTooLarge, fmt.Sprintf(
		"the query is %d bytes long, at most %d; larger calls go into the body of a POST", len(raw), MaxQueryBytes)}
}
