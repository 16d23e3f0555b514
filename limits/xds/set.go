package xds

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/limits"
)

// TypeURL is the type of the resources.
const TypeURL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

const (
	// MaxResources bounds the resources of a set, as that of the files in a
	// folder of limits.
	MaxResources = 1_000
	// MaxResponseBytes bounds a response.
	MaxResponseBytes = 16 << 20

	// maxNameBytes bounds the name of a resource.
	maxNameBytes = 256
	// maxNesting is how deep messages nest: somewhat more than descriptors may,
	// whose own bound has the better message.
	maxNesting = 2*limits.MaxDepth + 16
)

// filePrefix begins the names of files, which positions have.
const filePrefix = "xds:"

// Set is the state of the world of an xDS server: all its limits. It is
// immutable.
type Set struct {
	// Version is that of the server, for logs.
	Version string
	// Files are the resources as files of limits, in the order of their names.
	// A name is "xds:" and that of the resource.
	Files []limits.File
	// Response is the response that the set came in.
	Response *discovery.DiscoveryResponse

	// Unused are the rules of the overlay that no limit has, with their
	// positions.
	Unused []string

	overlay *Overlay
	configs []*ratelimit.RateLimitConfig // of the files
	sum     [sha256.Size]byte            // of names and texts
}

// resource is a decoded resource.
type resource struct {
	name   string
	config *ratelimit.RateLimitConfig
	file   *file
}

// newSet decodes a response, and adds the fields of an overlay. The error names
// the resource and its fault.
func newSet(r *discovery.DiscoveryResponse, o *Overlay) (*Set, error) {
	if r.GetTypeUrl() != TypeURL {
		return nil, fmt.Errorf("a response of type %s: want %s", yamlpos.Quote(r.GetTypeUrl()), TypeURL)
	}
	if n := len(r.GetResources()); n > MaxResources {
		return nil, fmt.Errorf("%d resources: want at most %d; a resource is one domain with all its descriptors", n, MaxResources)
	}
	all := make([]resource, 0, len(r.GetResources()))
	for i, a := range r.GetResources() {
		if a.GetTypeUrl() != TypeURL {
			return nil, fmt.Errorf("resource %d is of type %s: want %s", i, yamlpos.Quote(a.GetTypeUrl()), TypeURL)
		}
		one, err := newResource(a.GetValue(), o)
		if err != nil {
			return nil, fmt.Errorf("resource %d%w", i, err)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b resource) int { return cmp.Compare(a.name, b.name) })
	s := &Set{Version: r.GetVersionInfo(), Response: r, overlay: o}
	s.Unused = o.unused(all)
	hash := sha256.New()
	for i, one := range all {
		if i > 0 && all[i-1].name == one.name {
			return nil, fmt.Errorf("two resources have the name %s: want one of each name", yamlpos.Quote(one.name))
		}
		s.Files = append(s.Files, limits.File{Name: filePrefix + one.name, Data: one.file.text})
		s.configs = append(s.configs, one.config)
		for _, part := range [][]byte{[]byte(one.name), one.file.text} {
			hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part)))) // a hash never fails
			hash.Write(part)
		}
	}
	hash.Sum(s.sum[:0])
	return s, nil
}

// newResource decodes a resource. The error continues "resource 7".
func newResource(data []byte, o *Overlay) (resource, error) {
	c := &ratelimit.RateLimitConfig{}
	if err := (proto.UnmarshalOptions{RecursionLimit: maxNesting}).Unmarshal(data, c); err != nil {
		return resource{}, fmt.Errorf(": is no RateLimitConfig: %w", plain(err))
	}
	name := cmp.Or(c.GetName(), c.GetDomain())
	switch {
	case name == "":
		return resource{}, errors.New(" has neither a name nor a domain: want a name of its own, such as that of its domain")
	case len(name) > maxNameBytes:
		return resource{}, fmt.Errorf(" (%s): name: has %d bytes: want at most %d", yamlpos.Quote(name), len(name), maxNameBytes)
	case strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }):
		return resource{}, fmt.Errorf(" (%s): name: want letters, digits and signs that can be printed", yamlpos.Quote(name))
	}
	f, err := fileOf(c, o, false)
	if err != nil {
		return resource{}, fmt.Errorf(" (%s): %w", yamlpos.Quote(name), err)
	}
	return resource{name, c, f}, nil
}

// plain returns the text of an error of package proto, whose spaces differ from
// build to build.
func plain(err error) error {
	return errors.New(strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == ' ' || r == '\u00a0' }), " "))
}

// Explain adds the field of its resource, or its position in the overlay, to
// each diagnostic about a file of the set.
func (s *Set) Explain(found yamlpos.Diagnostics) {
	files := make(map[string]*file)
	for i := range found {
		d := &found[i]
		f, ok := files[d.File]
		if !ok {
			f = s.explained(d.File)
			files[d.File] = f
		}
		if f == nil {
			continue
		}
		if field := f.field(d.Line); field != "" {
			d.Message = field + ": " + d.Message
		}
	}
}

// explained returns a file with the fields of its lines, nil for one of others.
func (s *Set) explained(name string) *file {
	i, ok := slices.BinarySearchFunc(s.Files, name, func(f limits.File, name string) int { return cmp.Compare(f.Name, name) })
	if !ok {
		return nil
	}
	f, err := fileOf(s.configs[i], s.overlay, true)
	if err != nil {
		return nil
	}
	return f
}

// cut returns s, or its begin if it has more than n bytes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}
