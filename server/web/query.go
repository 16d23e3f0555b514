package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// readPairs calls read with each name, decoded, and value, as written, of a
// query. It skips empty pairs; a pair without '=' has an empty value. The order
// of parameters matters here, which is why url.ParseQuery would not do. The
// first error ends the query.
func readPairs(raw string, read func(name, value string) error) error {
	if len(raw) > MaxQueryBytes {
		return newProblem(http.StatusRequestURITooLong, codeTooLarge,
			"the query is %d bytes long, at most %d; larger calls go into the body of a POST", len(raw), MaxQueryBytes)
	}
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		rawName, value, _ := strings.Cut(pair, "=")
		name, err := unescape(rawName)
		if err != nil {
			return badRequest("the parameter name %s: %v", quote(rawName), err)
		}
		if err := read(name, value); err != nil {
			return err
		}
	}
	return nil
}

// unescape decodes percent-escapes, and '+' as a space.
func unescape(s string) (string, error) {
	text, err := url.QueryUnescape(s)
	var escape url.EscapeError
	if errors.As(err, &escape) {
		return "", fmt.Errorf("%q is not a percent-escape; a percent sign is written %%25", string(escape))
	}
	return text, err
}
