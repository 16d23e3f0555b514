package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

// readJSON reads the body of a request into v: one JSON value of at most so many
// bytes, with no member that v has not. want is what the body should look like,
// for messages.
func readJSON(w http.ResponseWriter, r *http.Request, bytes int64, want string, v any) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return fmt.Errorf("want %s as application/json", want)
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, bytes))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("want %s: %w", want, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("want %s and nothing after it", want)
	}
	return nil
}
