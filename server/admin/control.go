package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/georld/rld/server/admin/api"
)

// clusterPath is the path of the commands about the control log.
const clusterPath = "/v1/cluster/"

// maxWithout bounds the regions of an api.InitRequest.
const maxWithout = 64

// recoverWithin bounds the wait of a recovery for the disk.
const recoverWithin = 5 * time.Second

func cluster(r request) (any, error) {
	out := api.ClusterAnswer{Alone: true}
	if r.o.Cluster != nil {
		out = r.o.Cluster()
	}
	out.At = now()
	return out, nil
}

func history(r request) (any, error) {
	out := api.HistoryAnswer{Alone: true}
	if r.o.History != nil {
		out = r.o.History()
	}
	out.At = now()
	return out, nil
}

// errNoControl is the error of a command to a daemon alone.
var errNoControl = failed(http.StatusConflict, errors.New("this daemon is alone: it has no region, and needs no cluster"))

// clusterCommand serves one command about the control log.
func clusterCommand(c api.ClusterCommandName) func(request) (any, error) {
	if c == api.InitCluster {
		return initCluster
	}
	return recoverCluster
}

func initCluster(r request) (any, error) {
	var q api.InitRequest
	if err := r.readCommand(maxLayoutBytes, `{"without": ["..."], "dry_run": false}`, &q); err != nil {
		return nil, err
	}
	switch {
	case len(q.Without) > maxWithout:
		return nil, fmt.Errorf("%d regions, want at most %d", len(q.Without), maxWithout)
	case r.o.InitCluster == nil:
		return nil, errNoControl
	}
	out, err := r.o.InitCluster(q)
	out.At = now()
	return out, failed(http.StatusConflict, err)
}

func recoverCluster(r request) (any, error) {
	var q api.RecoverRequest
	if err := r.readCommand(maxLayoutBytes, `{"daemon": "...", "reason": "..."}`, &q); err != nil {
		return nil, err
	}
	if r.o.RecoverCluster == nil {
		return nil, errNoControl
	}
	ctx, cancel := context.WithTimeout(r.Context(), recoverWithin)
	defer cancel()
	out, err := r.o.RecoverCluster(ctx, q)
	out.At = now()
	return out, failed(http.StatusConflict, err)
}
