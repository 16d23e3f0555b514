package web

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/georld/rld/node"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
)

// maxBodyFault bounds the repeated text of a body's fault, in bytes: it may
// quote a name or a value of any length.
const maxBodyFault = 256

// readCheck makes a call of a request to /v1/check: from the body of a POST
// that has one, else from the query.
func (x *exchange) readCheck(w http.ResponseWriter, r *http.Request, bodies bodyReader) error {
	if r.Method != http.MethodPost {
		return x.readQuery(r.URL.RawQuery)
	}
	body, done, err := bodies.read(w, r)
	if err != nil {
		return err
	}
	defer done()
	if len(body) == 0 {
		return x.readQuery(r.URL.RawQuery)
	}
	if err := readPairs(r.URL.RawQuery, x.readAnswerParam); err != nil {
		return err
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != jsonType {
		return newProblem(http.StatusUnsupportedMediaType, codeMediaType,
			"a body of type %s; send a rld.v1.CheckRequest as %s", quote(r.Header.Get("Content-Type")), jsonType)
	}
	var req rldv1.CheckRequest
	if err := decodeBody(body, &req); err != nil {
		return err
	}
	if req.GetHits() == 0 && statesHits(body) {
		return noHits("hits")
	}
	return x.readRequest(&req)
}

// statesHits reports whether a valid CheckRequest in JSON has hits. The message
// does not distinguish hits of 0 from none.
func statesHits(body []byte) bool {
	if !bytes.Contains(body, []byte(`"hits"`)) {
		return false
	}
	var stated struct{ Hits *json.RawMessage }
	return json.Unmarshal(body, &stated) == nil && stated.Hits != nil
}

// decodeBody decodes the JSON form of a message and refuses unknown fields.
func decodeBody(body []byte, m proto.Message) error {
	err := protojson.Unmarshal(body, m)
	if err == nil {
		return nil
	}
	// The errors of protojson start with "proto:" and a blank that may be a
	// no-break space, so that nobody compares them.
	text := strings.TrimSpace(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto:"))
	if len(text) > maxBodyFault {
		text = text[:maxBodyFault] + "..."
	}
	name, article := string(m.ProtoReflect().Descriptor().FullName()), "a"
	if strings.ContainsRune("aeiou", rune(name[0])) {
		article = "an"
	}
	return badRequest("the body is not %s %s in JSON: %s", article, name, text)
}

// readAnswerParam reads a parameter beside a body, which may only set the form
// of the answer.
func (x *exchange) readAnswerParam(name, raw string) error {
	if !forAnswer(name) {
		return badRequest("parameter %s beside a body: the question is either in the body or in the query; "+
			"only deny_status and headers go with both", quote(name))
	}
	_, err := x.params.read(name, raw)
	return err
}

// readRequest makes a call of a native request.
func (x *exchange) readRequest(req *rldv1.CheckRequest) error {
	if n := len(req.GetDescriptors()); n > node.MaxDescriptors {
		return badRequest("%d descriptors in one call, at most %d", n, node.MaxDescriptors)
	}
	hits := max(1, req.GetHits())
	x.id, x.call.Domain, x.call.Peek = req.GetId(), req.GetDomain(), req.GetPeek()
	for i, d := range req.GetDescriptors() {
		if n := len(d.GetEntries()); n > node.MaxEntries {
			return badRequest("descriptor %d: %d entries, at most %d", i, n, node.MaxEntries)
		}
		var limit rules.Override
		if o := d.GetLimit(); o != nil {
			var problem string
			if limit, problem = server.Override(o.GetRequestsPerUnit(), int32(o.GetUnit())); problem != "" {
				return badRequest("descriptor %d: %s", i, problem)
			}
		}
		var entries []rules.Entry
		for j, e := range d.GetEntries() {
			if e.GetKey() == "" {
				return badRequest("descriptor %d, entry %d: the key is empty", i, j)
			}
			entries = append(entries, rules.Entry{Key: e.GetKey(), Value: e.GetValue()})
		}
		own := hits
		if d.Hits != nil {
			own = d.GetHits()
		}
		x.addDescriptor(entries, own, limit)
	}
	return nil
}
