package web

import "net/http"

// fields collects the header fields of an answer in one buffer, so that they
// cost three allocations and not two each. The zero value is ready to use.
//
// A value is appended to text and closed by end. Names are in the canonical
// form of net/http, so that Header.Get finds them; the wire does not care.
type fields struct {
	text  []byte
	names []string
	ends  []int // end of each value in text
}

// end makes the text appended since the last end the value of name.
func (f *fields) end(name string) {
	f.names = append(f.names, name)
	f.ends = append(f.ends, len(f.text))
}

// set adds a field with a fixed value.
func (f *fields) set(name, value string) {
	f.text = append(f.text, value...)
	f.end(name)
}

// publish sets the fields in h. The fields may be used again at once.
func (f *fields) publish(h http.Header) {
	text, start := string(f.text), 0
	values := make([]string, len(f.names))
	for i, name := range f.names {
		values[i] = text[start:f.ends[i]]
		start = f.ends[i]
		h[name] = values[i : i+1 : i+1]
	}
}

func (f *fields) reset() {
	f.text, f.names, f.ends = f.text[:0], f.names[:0], f.ends[:0]
}
