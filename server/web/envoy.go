package web

import (
	"net/http"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/georld/rld/server/auth"
)

// envoy serves /json: Envoy's rate limit service in JSON, for any method and
// media type, as upstream has it. Upstream answers 400 too when its store is
// gone; here a failure of rld is 503.
func (h *handler) envoy(w http.ResponseWriter, r *http.Request) {
	caller, ok := h.known(w, r)
	if !ok {
		return
	}
	body, done, err := h.bodies.read(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	defer done()
	var req ratelimit.RateLimitRequest
	if err := decodeBody(body, &req); err != nil {
		h.fail(w, r, err)
		return
	}
	if !h.admit(w, r, caller, auth.Need{Domain: req.GetDomain()}) {
		return
	}
	resp, err := h.opts.RLS(r.Context(), &req)
	if err != nil {
		writeProblem(w, r, envoyProblem(err))
		return
	}
	answer, err := protojson.Marshal(resp)
	if err != nil {
		writeProblem(w, r, asProblem(err))
		return
	}
	reply(w, r, envoyStatus(resp), jsonType, answer)
}

func envoyStatus(resp *ratelimit.RateLimitResponse) int {
	switch resp.GetOverallCode() {
	case ratelimit.RateLimitResponse_OK:
		return http.StatusOK
	case ratelimit.RateLimitResponse_OVER_LIMIT:
		return http.StatusTooManyRequests
	}
	return http.StatusInternalServerError
}

// envoyProblem separates faults of the request from failures of rld.
func envoyProblem(err error) *problem {
	if s, ok := status.FromError(err); ok {
		switch s.Code() {
		case codes.Unknown, codes.InvalidArgument, codes.Unimplemented:
			return newProblem(http.StatusBadRequest, codeInvalid, "%s", s.Message())
		}
		return newProblem(http.StatusServiceUnavailable, codeUnavailable, "rld cannot decide: %s", s.Message())
	}
	return asProblem(err)
}
