package files

import (
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

// checkLua runs the script of a filter with keys that must be refused, and with
// others.
func checkLua(t *testing.T, f *luafilter.Lua) {
	t.Helper()
	l := lua.NewState()
	defer l.Close()
	script := f.GetDefaultSourceCode().GetInlineString()
	if script == "" {
		script = string(example(t, "envoy", f.GetDefaultSourceCode().GetFilename()))
	}
	if err := l.DoString(script); err != nil {
		t.Fatal(err)
	}
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
		headers := map[string][]string{}
		if tt.values != nil {
			headers["x-api-key"] = tt.values
		}
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
		err := l.CallByParam(lua.P{Fn: l.GetGlobal("envoy_on_request"), Protect: true}, handle)
		if err != nil || status != tt.status || len(headers["x-api-key"]) != tt.left {
			t.Errorf("%.20q: %v, status %q, headers %.40q; want %q", tt.values, err, status, headers, tt.status)
		}
	}
}
