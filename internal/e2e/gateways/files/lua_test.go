package files

import (
	"fmt"
	"strings"
	"testing"

	luafilter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"
)

// readLoose reads some fields of YAML.
func readLoose(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// luaHeaders gives Lua the headers of a request as Envoy does: get joins all
// values.
func luaHeaders(l *lua.LState, headers map[string][]string) *lua.LTable {
	t := l.NewTable()
	l.SetFuncs(t, map[string]lua.LGFunction{
		"get": func(l *lua.LState) int {
			values, ok := headers[l.CheckString(2)]
			if !ok {
				return 0
			}
			l.Push(lua.LString(strings.Join(values, ",")))
			return 1
		},
		"getNumValues": func(l *lua.LState) int {
			l.Push(lua.LNumber(len(headers[l.CheckString(2)])))
			return 1
		},
		"remove": func(l *lua.LState) int {
			delete(headers, l.CheckString(2))
			return 0
		},
	})
	return t
}

// refuses returns the status by which the script of a filter refuses a request,
// "" for none.
func refuses(t *testing.T, l *lua.LState, headers map[string][]string) string {
	t.Helper()
	status := ""
	handle := l.NewTable()
	l.SetFuncs(handle, map[string]lua.LGFunction{
		"headers": func(l *lua.LState) int {
			l.Push(luaHeaders(l, headers))
			return 1
		},
		"respond": func(l *lua.LState) int {
			status = l.CheckTable(2).RawGetString(":status").String()
			return 0
		},
	})
	if err := l.CallByParam(lua.P{Fn: l.GetGlobal("envoy_on_request"), Protect: true}, handle); err != nil {
		t.Fatal(err)
	}
	return status
}

// loadLua runs the script of a filter, which defines its functions. It ends
// with the test.
func loadLua(t *testing.T, f *luafilter.Lua) *lua.LState {
	t.Helper()
	l := lua.NewState()
	t.Cleanup(l.Close)
	script := f.GetDefaultSourceCode().GetInlineString()
	if script == "" {
		script = string(example(t, "envoy", f.GetDefaultSourceCode().GetFilename()))
	}
	if err := l.DoString(script); err != nil {
		t.Fatal(err)
	}
	return l
}

// checkLua runs the script of a filter with keys and paths that must be
// refused, and with others.
func checkLua(t *testing.T, f *luafilter.Lua) {
	t.Helper()
	l := loadLua(t, f)
	checkPaths(t, l)
	checkEscapes(t, l)
	for _, tt := range []struct {
		values []string
		status string // "" for none
		left   int
	}{
		{nil, "", 0},
		{[]string{"k1&hits=0,x:y%0d?peek=true#"}, "", 1},
		{[]string{"!" + strings.Repeat("~", 4095)}, "", 1},
		{[]string{""}, "", 0},
		{[]string{strings.Repeat("k", 4097)}, "400", 1},
		{[]string{"k", "k"}, "400", 2},
		{[]string{"", "k"}, "400", 2},
		{[]string{"", ""}, "400", 2},
		{[]string{"k\xff"}, "400", 1},
		{[]string{"clé"}, "400", 1},
		{[]string{"k\x00"}, "400", 1},
		{[]string{"a b"}, "", 1},
		{[]string{"k\x7f"}, "400", 1},
	} {
		headers := map[string][]string{":path": {"/v1/orders?x=%41"}}
		if tt.values != nil {
			headers["x-api-key"] = tt.values
		}
		if got := refuses(t, l, headers); got != tt.status || len(headers["x-api-key"]) != tt.left {
			t.Errorf("%.20q: status %q, headers %.40q; want %q", tt.values, got, headers, tt.status)
		}
	}
}

// checkPaths holds that a script refuses paths that could avoid a limit, but
// not in a query.
func checkPaths(t *testing.T, l *lua.LState) {
	t.Helper()
	for path, want := range map[string]string{
		"/login;x": "400", "/v1;x/orders": "400", "/v1/batch;x": "400", "/;": "400", "//v1/orders": "400", "/v1//reports": "400",
		`/v1\reports`: "400", "/v1/reports;x?y": "400",
		"/": "", "/v1/orders": "", "/v1/a%20b%3bc": "", "*": "", "/v1/orders?a;b=//%41": "",
	} {
		if got := refuses(t, l, map[string][]string{":path": {path}}); got != want {
			t.Errorf("%s: status %q, want %q", path, got, want)
		}
	}
	if got := refuses(t, l, map[string][]string{"x-api-key": {"\xff"}}); got != "400" {
		t.Errorf("without a path, as CONNECT, a faulty key: status %q", got)
	}
}

// checkEscapes holds that a script refuses letters, digits and slashes that are
// escaped in a path.
func checkEscapes(t *testing.T, l *lua.LState) {
	t.Helper()
	for c := range 256 {
		for _, form := range []string{"/v1/%%%02x", "/v1/%%%02X"} {
			letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '/' || c == '\\'
			path := fmt.Sprintf(form, c)
			want := ""
			if letter {
				want = "400"
			}
			if got := refuses(t, l, map[string][]string{":path": {path}}); got != want {
				t.Errorf("%s: status %q, want %q", path, got, want)
			}
			if got := refuses(t, l, map[string][]string{":path": {"/v1/?" + path}}); got != "" {
				t.Errorf("%s in a query: status %q", path, got)
			}
		}
	}
}
