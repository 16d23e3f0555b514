package files

import (
	"io"
	"net/http"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// newLua returns a new Lua, with its tables by name.
func newLua(t *testing.T, tables map[string]map[string]lua.LGFunction) *lua.LState {
	t.Helper()
	l := lua.NewState()
	t.Cleanup(l.Close)
	for path, functions := range tables {
		at := l.G.Global
		for name := range strings.SplitSeq(path, ".") {
			next, ok := at.RawGetString(name).(*lua.LTable)
			if !ok {
				next = l.NewTable()
				at.RawSetString(name, next)
			}
			at = next
		}
		l.SetFuncs(at, functions)
	}
	return l
}

// headerTable returns headers as OpenResty has them: a table for a header that
// comes several times.
func headerTable(l *lua.LState, headers map[string][]string) *lua.LTable {
	t := l.NewTable()
	for name, values := range headers {
		if len(values) == 1 {
			t.RawSetString(name, lua.LString(values[0]))
			continue
		}
		list := l.NewTable()
		for _, v := range values {
			list.Append(lua.LString(v))
		}
		t.RawSetString(name, list)
	}
	return t
}

// returnsText returns a function of Lua with a fixed result.
func returnsText(text string) lua.LGFunction {
	return func(l *lua.LState) int {
		l.Push(lua.LString(text))
		return 1
	}
}

// kongRequest is a request at Kong, and what becomes of it.
type kongRequest struct {
	path, address string
	header        map[string][]string
	truncated     bool
	// status is that of the answer, 0 for a request that is passed on.
	status int
	answer map[string]string // headers
}

// pass runs the function of Kong for a request. Its HTTP client is a real one,
// which asks rld at an address in place of that of the example.
func (r *kongRequest) pass(t *testing.T, script, from, to string) {
	t.Helper()
	r.answer = make(map[string]string)
	read := func(l *lua.LState, n int) {
		if h, ok := l.Get(n).(*lua.LTable); ok {
			h.ForEach(func(k, v lua.LValue) { r.answer[k.String()] = v.String() })
		}
	}
	l := newLua(t, map[string]map[string]lua.LGFunction{
		"kong.request": {
			"get_method": returnsText("GET"), "get_host": returnsText("web.test"), "get_path_with_query": returnsText(r.path),
			"get_headers": func(l *lua.LState) int {
				l.Push(headerTable(l, r.header))
				if !r.truncated {
					return 1
				}
				l.Push(lua.LString("truncated"))
				return 2
			},
		},
		"kong.client": {"get_forwarded_ip": returnsText(r.address)},
		"kong.log":    {"err": func(*lua.LState) int { return 0 }},
		"kong.response": {
			"exit": func(l *lua.LState) int {
				r.status = l.CheckInt(1)
				read(l, 3)
				return 0
			},
			"set_header": func(l *lua.LState) int {
				r.answer[l.CheckString(1)] = l.CheckString(2)
				return 0
			},
		},
	})
	l.PreloadModule("resty.http", func(l *lua.LState) int {
		l.Push(l.SetFuncs(l.NewTable(), map[string]lua.LGFunction{"new": func(l *lua.LState) int {
			l.Push(l.SetFuncs(l.NewTable(), map[string]lua.LGFunction{
				"set_timeouts": func(l *lua.LState) int {
					for i := 2; i < 5; i++ {
						l.CheckInt(i)
					}
					return 0
				},
				"request_uri": func(l *lua.LState) int {
					return requestURI(l, strings.Replace(l.CheckString(2), from, to, 1), l.CheckTable(3))
				},
			}))
			return 1
		}}))
		return 1
	})
	if err := l.DoString(script); err != nil {
		t.Fatal(err)
	}
}

// requestURI is that of lua-resty-http: a table is a header that comes several
// times.
func requestURI(l *lua.LState, url string, options *lua.LTable) int {
	r, err := http.NewRequest(options.RawGetString("method").String(), url, http.NoBody)
	if err != nil {
		l.RaiseError("%v", err)
	}
	options.RawGetString("headers").(*lua.LTable).ForEach(func(k, v lua.LValue) {
		if list, ok := v.(*lua.LTable); ok {
			list.ForEach(func(_, v lua.LValue) { r.Header.Add(k.String(), v.String()) })
			return
		}
		r.Header.Add(k.String(), v.String())
	})
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		l.Push(lua.LNil)
		l.Push(lua.LString(err.Error()))
		return 2
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		l.RaiseError("%v", err)
	}
	// Names of headers have no case.
	headers, fold := l.NewTable(), l.NewTable()
	l.SetField(fold, "__index", l.NewFunction(func(l *lua.LState) int {
		if v := a.Header.Get(l.CheckString(2)); v != "" {
			l.Push(lua.LString(v))
			return 1
		}
		return 0
	}))
	l.SetMetatable(headers, fold)
	out := l.NewTable()
	out.RawSetString("status", lua.LNumber(a.StatusCode))
	out.RawSetString("body", lua.LString(body))
	out.RawSetString("headers", headers)
	l.Push(out)
	return 1
}

// TestKong reads the files of Kong with the fields that they have in Kong 3,
// and runs the function with a real rld.
func TestKong(t *testing.T) {
	var conf struct {
		Format   string `json:"_format_version"`
		Services []struct {
			Name   string `json:"name"`
			URL    string `json:"url"`
			Routes []struct {
				Name      string   `json:"name"`
				Paths     []string `json:"paths"`
				StripPath *bool    `json:"strip_path"`
			} `json:"routes"`
		} `json:"services"`
		Plugins []struct {
			Name   string `json:"name"`
			Config struct {
				Access []string `json:"access"`
			} `json:"config"`
		} `json:"plugins"`
	}
	readYAML(t, "kong.yml", example(t, "kong", "kong.yml"), &conf)
	if conf.Format != "3.0" || len(conf.Services) != 1 || len(conf.Plugins) != 1 || conf.Plugins[0].Name != "pre-function" {
		t.Fatalf("%+v", conf)
	}
	settings := make(map[string]string)
	for line := range strings.SplitSeq(string(example(t, "kong", "kong.conf")), "\n") {
		if name, value, ok := strings.Cut(line, " = "); ok && !strings.HasPrefix(line, "#") {
			settings[name] = value
		}
	}
	if settings["untrusted_lua_sandbox_requires"] != "resty.http" || settings["declarative_config"] != "kong.yml" || settings["database"] != "off" {
		t.Errorf("%v", settings)
	}
	script := conf.Plugins[0].Config.Access[0]
	// Kong compiles the code, and runs it once to see whether it returns a
	// function.
	if _, err := lua.NewState().LoadString(script); err != nil {
		t.Fatal(err)
	}
	untilTomorrow(t)
	d := startRLD(t, "kong")
	const from = "127.0.0.1:8080"
	for _, tt := range []struct {
		name      string
		keys      []string
		path      string
		truncated bool
		want      int // of 13
		status    int // of the others
	}{
		{"a key", []string{"k1"}, "/v1/reports/march?hits=0", false, 10, 429},
		{"a query in the key", []string{"k2&hits=0"}, "/v1/./reports/march", false, 10, 429},
		{"no key", nil, "/v1/reports/march", false, 10, 429},
		{"a login", []string{"k1"}, "/login", false, 10, 429},
		{"two keys", []string{"k3", "k4"}, "/v1/reports/march", false, 0, 429},
		{"many headers", nil, "/v1/reports/march", true, 0, 431},
	} {
		passed := 0
		for range 13 {
			r := kongRequest{path: tt.path, address: "192.0.2.1", truncated: tt.truncated, header: map[string][]string{}}
			if tt.keys != nil {
				r.header["x-api-key"] = tt.keys
			}
			r.pass(t, script, from, d.http)
			if r.status == 0 {
				passed++
			} else if r.status != tt.status {
				t.Errorf("%s: status %d", tt.name, r.status)
			}
			if (r.answer["RateLimit"] == "") != (tt.want == 0) || (r.answer["Retry-After"] != "") != (r.status == 429 && tt.want > 0) {
				t.Errorf("%s: %d, headers %v", tt.name, r.status, r.answer)
			}
		}
		if passed != tt.want {
			t.Errorf("%s: %d of 13 passed, want %d", tt.name, passed, tt.want)
		}
	}
	r := kongRequest{path: "/v1/orders", address: "192.0.2.1"}
	if r.pass(t, script, from, freeAddress(t)); r.status != 503 {
		t.Errorf("without rld: status %d", r.status)
	}
}

// TestAPISIX reads the files of APISIX with the fields that they have in
// APISIX 3, and runs the function of the route.
func TestAPISIX(t *testing.T) {
	var conf struct {
		APISIX struct {
			NodeListen int `json:"node_listen"`
		} `json:"apisix"`
		Deployment struct {
			Role      string `json:"role"`
			DataPlane struct {
				Provider string `json:"config_provider"`
			} `json:"role_data_plane"`
		} `json:"deployment"`
	}
	readYAML(t, "config.yaml", example(t, "apisix", "config.yaml"), &conf)
	var routes struct {
		Routes []struct {
			ID       string `json:"id"`
			URI      string `json:"uri"`
			Upstream struct {
				Type  string         `json:"type"`
				Nodes map[string]int `json:"nodes"`
			} `json:"upstream"`
			Plugins struct {
				Function struct {
					Phase     string   `json:"phase"`
					Functions []string `json:"functions"`
				} `json:"serverless-pre-function"`
				Auth struct {
					URI            string   `json:"uri"`
					RequestHeaders []string `json:"request_headers"`
					ClientHeaders  []string `json:"client_headers"`
					Timeout        int      `json:"timeout"`
					KeepalivePool  int      `json:"keepalive_pool"`
					Degradation    bool     `json:"allow_degradation"`
					StatusOnError  int      `json:"status_on_error"`
				} `json:"forward-auth"`
			} `json:"plugins"`
		} `json:"routes"`
	}
	text := example(t, "apisix", "apisix.yaml")
	readYAML(t, "apisix.yaml", text, &routes)
	// Without this line APISIX takes the file for one that is being written.
	if !strings.HasSuffix(string(text), "\n#END\n") {
		t.Error("apisix.yaml does not end with #END")
	}
	p := routes.Routes[0].Plugins
	switch a := p.Auth; {
	case conf.Deployment.Role != "data_plane" || conf.Deployment.DataPlane.Provider != "yaml":
		t.Errorf("%+v", conf)
	case a.URI != "http://127.0.0.1:8080/v1/forward-auth/edge", a.Degradation, a.Timeout < 1, a.Timeout > 60000, a.KeepalivePool < 1,
		a.StatusOnError != 503, strings.Join(a.RequestHeaders, ",") != "X-Api-Key":
		t.Errorf("%+v", a)
	case p.Function.Phase != "rewrite" || len(p.Function.Functions) != 1:
		t.Errorf("%+v", p.Function)
	}
	for _, tt := range []struct {
		keys      []string
		truncated bool
		want      int
	}{{nil, false, 0}, {[]string{"k"}, false, 0}, {[]string{"k", "k"}, false, 400}, {[]string{"k"}, true, 400}} {
		status := 0
		l := newLua(t, map[string]map[string]lua.LGFunction{
			"ngx": {"exit": func(l *lua.LState) int {
				status = l.CheckInt(1)
				return 0
			}},
			"ngx.req": {"get_headers": func(l *lua.LState) int {
				headers := map[string][]string{}
				if tt.keys != nil {
					headers["x-api-key"] = tt.keys
				}
				l.Push(headerTable(l, headers))
				if !tt.truncated {
					return 1
				}
				l.Push(lua.LString("truncated"))
				return 2
			}},
		})
		if err := l.DoString(p.Function.Functions[0]); err != nil {
			t.Fatal(err)
		}
		f := l.Get(-1)
		if err := l.CallByParam(lua.P{Fn: f, Protect: true}); err != nil || status != tt.want {
			t.Errorf("%q: %v, status %d, want %d", tt.keys, err, status, tt.want)
		}
	}
}
