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

func backup(r request) (any, error) {
	if r.o.Backup == nil {
		return nil, errNoControl
	}
	out, err := r.o.Backup(now())
	return out, failed(http.StatusConflict, err)
}

// errNoControl is the error of a command to a daemon alone.
var errNoControl = failed(http.StatusConflict, errors.New("this daemon is alone: it has no region, and needs no cluster"))

// clusterCommand serves one command about the control log.
func clusterCommand(c api.ClusterCommandName) func(request) (any, error) {
	switch c {
	case api.InitCluster:
		return initCluster
	case api.RecoverCluster:
		return recoverCluster
	case api.ResumeRegion:
		return resumeRegion
	}
	return func(r request) (any, error) { return changeCluster(r, c) }
}

// changeWant is an example of the body of a command about a region or a daemon.
const changeWant = `{"name": "...", "reason": "..."}`

// changeCluster serves one command about a region or a daemon.
func changeCluster(r request, c api.ClusterCommandName) (any, error) {
	var q api.ChangeRequest
	if err := r.readJSON(maxCommandBytes, changeWant, &q); err != nil {
		return nil, err
	}
	weighs, removes := c == api.AddRegion || c == api.WeighRegion, c == api.RemoveRegion || c == api.RemoveDaemon || c == api.RecoverStrict
	names := c != api.HoldFormat && c != api.UnholdFormat
	revokes := c == api.RevokeDaemon || c == api.UnrevokeDaemon
	switch {
	case names && q.Name == "":
		return nil, fmt.Errorf("the name is empty: want %s", changeWant)
	case weighs && !(q.Weight > 0 && q.Weight < 1), !weighs && q.Weight != 0:
		return nil, fmt.Errorf("weight_ratio %v: want one between 0 and 1 to add or weigh a region, and none otherwise", q.Weight)
	case q.Stopped && !removes && c != api.AddRegion, q.Force && (removes || revokes || !names), len(q.Voters) > 0 && c != api.RecoverStrict,
		!names && q.Name != "":
		return nil, errors.New("fields of another command")
	case r.o.ChangeCluster == nil:
		return nil, errNoControl
	}
	ctx, cancel := context.WithTimeout(r.Context(), submitTime(q.WaitSeconds))
	defer cancel()
	out, err := r.o.ChangeCluster(ctx, c, q)
	out.At = now()
	return out, failed(http.StatusConflict, err)
}

// clusterOutcome serves the result of a command about a region or a daemon.
func clusterOutcome(r request) (any, error) {
	if r.o.ClusterCommand == nil {
		return nil, errNoControl
	}
	out, err := r.o.ClusterCommand(r.URL.Query().Get("id"))
	out.At = now()
	return out, failed(http.StatusConflict, err)
}

func initCluster(r request) (any, error) {
	var q api.InitRequest
	if err := r.readJSON(maxCommandBytes, `{"without": ["..."], "dry_run": false}`, &q); err != nil {
		return nil, err
	}
	switch {
	case max(len(q.Without), len(q.Regions)) > maxWithout:
		return nil, fmt.Errorf("%d regions, want at most %d", max(len(q.Without), len(q.Regions)), maxWithout)
	case r.o.InitCluster == nil:
		return nil, errNoControl
	}
	out, err := r.o.InitCluster(q)
	out.At = now()
	return out, failed(http.StatusConflict, err)
}

func recoverCluster(r request) (any, error) {
	var q api.RecoverRequest
	if err := r.readJSON(maxCommandBytes, `{"daemon": "...", "reason": "..."}`, &q); err != nil {
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

func resumeRegion(r request) (any, error) {
	var q api.ResumeRequest
	if err := r.readJSON(maxCommandBytes, `{"region": "...", "reason": "..."}`, &q); err != nil {
		return nil, err
	}
	if r.o.ResumeRegion == nil {
		return nil, errNoControl
	}
	out, err := r.o.ResumeRegion(q)
	out.At = now()
	return out, failed(http.StatusConflict, err)
}
