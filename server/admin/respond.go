package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"reflect"

	"github.com/georld/rld/server/admin/api"
)

// request is a request as the functions that answer pages get it.
type request struct {
	*http.Request
	w http.ResponseWriter
	o *Options
}

// statusError is an error with its HTTP status.
type statusError struct {
	status int
	error
}

// failed returns err with a status, nil for nil.
func failed(status int, err error) error {
	if err == nil {
		return nil
	}
	return statusError{status, err}
}

// answer serves the result of f as JSON, and an error as an api.Failure. An
// error without a status is that of an invalid request.
func (o *Options) answer(f func(request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		v, err := f(request{r, w, o})
		if err != nil {
			status = http.StatusBadRequest
			var s statusError
			if errors.As(err, &s) {
				status = s.status
			}
			v = api.Failure{Error: err.Error()}
		}
		respondJSON(w, status, v)
	}
}

func respondJSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	if status == http.StatusOK {
		e.SetIndent("", "  ")
	}
	e.SetEscapeHTML(false)
	if err := e.Encode(normal(reflect.ValueOf(v)).Interface()); err != nil {
		text(w, http.StatusInternalServerError, "cannot encode the answer: "+err.Error()+"\n")
		return
	}
	respond(w, status, "application/json", b.String())
}

// normal returns a deep copy of an answer in which nil lists are empty, numbers
// that JSON cannot carry are 0, and pointers to such numbers are nil. One of
// them, such as a rate over no time, must not cost the whole answer.
func normal(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Float64:
		if f := v.Float(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			out.SetFloat(f)
		}
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() == reflect.Float64 && v.Elem().Float() != normal(v.Elem()).Float() {
			return out
		}
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(normal(v.Elem()))
	case reflect.Slice:
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(normal(v.Index(i)))
		}
	case reflect.Struct:
		out.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(normal(v.Field(i)))
			}
		}
	default:
		out.Set(v)
	}
	return out
}

// readJSON decodes the body of a request into v: one JSON value of at most max
// bytes, without unknown members. want is an example of the body, for errors.
func (r request) readJSON(max int64, want string, v any) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return fmt.Errorf("want %s as application/json", want)
	}
	d := json.NewDecoder(http.MaxBytesReader(r.w, r.Body, max))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("want %s: %w", want, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("want %s and nothing after it", want)
	}
	entryOf(r.Request).body = v
	return nil
}

func text(w http.ResponseWriter, status int, body string) {
	respond(w, status, "text/plain; charset=utf-8", body)
}

func respond(w http.ResponseWriter, status int, contentType, body string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // fails only if the client is gone
}
