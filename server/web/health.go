package web

import "net/http"

// health serves /healthcheck in upstream's form, any method: 200 "OK", else
// 500. Unlike upstream's, it is OK only while the daemon is ready and not
// draining.
func (h *handler) health(w http.ResponseWriter, r *http.Request) {
	if !h.opts.Ready() {
		writeProblem(w, r, newProblem(http.StatusInternalServerError, codeNotReady, "not ready, or draining"))
		return
	}
	reply(w, r, http.StatusOK, "text/plain; charset=utf-8", []byte("OK"))
}
