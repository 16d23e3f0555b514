package xds

import (
	"fmt"
	"strconv"
	"strings"

	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"

	"github.com/georld/rld/limits"
)

// file is a resource that becomes a file of limits.
type file struct {
	text []byte
	// fields are the fields of the resource, or the positions in the overlay,
	// that the lines of the text are made of. Only an explained file has them.
	fields  []string
	explain bool
	indent  int
	fault   error

	overlay *Overlay
	used    []*overlaid // by rules of the resource
	domain  string
	path    []string // of the descriptor being written, parents first
}

// fileOf returns the file of a resource, with the fields of an overlay. The
// error names the field of one that can be no file.
func fileOf(c *ratelimit.RateLimitConfig, o *Overlay, explain bool) (*file, error) {
	f := &file{explain: explain, overlay: o, domain: c.GetDomain()}
	f.entry("domain", quote(c.GetDomain()), "domain")
	f.descriptors(c.GetDescriptors(), "", 1)
	return f, f.fault
}

// line adds a line.
func (f *file) line(text, field string) {
	if f.fault != nil {
		return
	}
	if len(f.text)+len(text)+2*f.indent > limits.MaxFileBytes {
		f.fault = fmt.Errorf("%s: the limits are longer than %d bytes as YAML: split the resource, "+
			"and set limits.merge_domains if its domain is then in several", field, limits.MaxFileBytes)
		return
	}
	for range f.indent {
		f.text = append(f.text, "  "...)
	}
	f.text = append(append(f.text, text...), '\n')
	if f.explain {
		f.fields = append(f.fields, field)
	}
}

func (f *file) entry(key, value, field string) { f.line(key+": "+value, field) }

// descriptors adds the descriptors of a level of the tree, from 1. within is
// the field that has them, with a dot at its end.
func (f *file) descriptors(all []*ratelimit.RateLimitDescriptor, within string, level int) {
	field := within + "descriptors"
	switch {
	case len(all) == 0 && level > 1:
		return
	case len(all) == 0:
		f.entry("descriptors", "[]", field)
		return
	case level > limits.MaxDepth:
		if f.fault == nil {
			f.fault = fmt.Errorf("%s: descriptors nested more than %d deep can never match: a request has at most as many entries",
				cut(field, maxNameBytes), limits.MaxDepth)
		}
		return
	}
	f.line("descriptors:", field)
	f.indent++
	for i, d := range all {
		if f.fault != nil {
			return
		}
		f.descriptor(d, field+"["+strconv.Itoa(i)+"]", level)
	}
	f.indent--
}

func (f *file) descriptor(d *ratelimit.RateLimitDescriptor, field string, level int) {
	within := field + "."
	f.line("- key: "+quote(d.GetKey()), within+"key")
	f.indent++
	if d.GetValue() != "" {
		f.entry("value", quote(d.GetValue()), within+"value")
	}
	if d.GetShadowMode() {
		f.entry("shadow_mode", "true", within+"shadow_mode")
	}
	if d.GetQuotaMode() {
		f.entry("quota_mode", "true", within+"quota_mode")
	}
	if m := d.GetMetadata(); m != nil {
		f.metadata(m, within+"metadata")
	}
	entry := d.GetKey()
	if d.GetValue() != "" {
		entry += "=" + d.GetValue()
	}
	f.path = append(f.path, entry)
	if p := d.GetRateLimit(); p != nil {
		f.limit(p, within+"rate_limit")
	}
	f.descriptors(d.GetDescriptors(), within, level+1)
	f.path = f.path[:len(f.path)-1]
	f.indent--
}

func (f *file) limit(p *ratelimit.RateLimitPolicy, field string) {
	within := field + "."
	f.line("rate_limit:", field)
	f.indent++
	if u := p.GetUnit(); u != ratelimit.RateLimitUnit_UNKNOWN {
		name := strings.ToLower(u.String()) // the number of one that is not defined
		f.entry("unit", quote(name), within+"unit")
	}
	if p.GetUnlimited() {
		f.entry("unlimited", "true", within+"unlimited")
	} else {
		f.entry("requests_per_unit", strconv.FormatUint(uint64(p.GetRequestsPerUnit()), 10), within+"requests_per_unit")
	}
	if p.GetName() != "" {
		f.entry("name", quote(p.GetName()), within+"name")
	}
	if len(p.GetReplaces()) > 0 {
		f.line("replaces:", within+"replaces")
		f.indent++
		for i, r := range p.GetReplaces() {
			f.line("- name: "+quote(r.GetName()), within+"replaces["+strconv.Itoa(i)+"].name")
		}
		f.indent--
	}
	f.overlaid()
	f.indent--
}

// overlaid adds the fields of the overlay to a limit.
func (f *file) overlaid() {
	if f.overlay == nil {
		return
	}
	if r := f.overlay.of(f.domain, strings.Join(f.path, " > ")); r != nil {
		for _, one := range r.fields {
			f.entry(one.name, one.value, one.at.String())
		}
		f.used = append(f.used, r)
	}
}

// field returns the field of a line, counted from 1, "" for none.
func (f *file) field(line int) string {
	if line < 1 || line > len(f.fields) {
		return ""
	}
	return f.fields[line-1]
}

// quote returns a text in double quotes that YAML reads as this text.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
