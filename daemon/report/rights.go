package report

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/server/admin/api"
)

// commandPoll is the time between two looks at the outcome of a command.
const commandPoll = 50 * time.Millisecond

// RightsCommand executes a command about rights: an entry of the control log.
// It waits for the entry until ctx ends.
func (r *Report) RightsCommand(ctx context.Context, c api.Command, q api.CommandRequest) (api.CommandAnswer, error) {
	change, err := r.changeOf(c, &q)
	if err != nil {
		return api.CommandAnswer{}, err
	}
	var id control.Number
	err = errors.New("the control log of this daemon is not open")
	r.Control.Do(func(n *control.Node) {
		id, err = n.Submit(control.Request{Author: q.Author, Reason: q.Reason, Change: change})
	})
	if err != nil {
		return api.CommandAnswer{}, trimControl(err)
	}
	t := time.NewTicker(commandPoll)
	defer t.Stop()
	for {
		if o := r.Control.State().Record.Outcome(id); o != nil {
			if o.Refused != "" {
				return api.CommandAnswer{}, errors.New(o.Refused)
			}
			out := api.CommandAnswer{Version: o.Version.String(), Next: nextOf(c, q.Name)}
			for _, h := range r.Control.State().Record.History {
				if h.Request == id {
					out.Text = h.Text
				}
			}
			return out, nil
		}
		select {
		case <-ctx.Done():
			return api.CommandAnswer{}, errors.New("the control log has no leader that a majority of its voters follows: the command " +
				"is done when there is one; rld cluster status names the voters")
		case <-t.C:
		}
	}
}

// changeOf returns the change of a command.
func (r *Report) changeOf(c api.Command, q *api.CommandRequest) (control.Change, error) {
	g := &control.RegionChange{Name: q.Name, Stopped: q.Stopped}
	switch c {
	case api.AddRegion, api.WeighRegion:
		if !(q.Weight > 0 && q.Weight < 1) {
			return control.Change{}, errors.New("want a weight above 0% and below 100%: --weight 20%")
		}
		g.Weight = uint32(math.Round(q.Weight * control.Whole))
		if g.Op = control.WeighRegion; c == api.AddRegion {
			g.Op = control.AddRegion
			if !r.heard(q.Name) {
				return control.Change{}, fmt.Errorf("no daemon of region %q with a state.dir is heard: start one first", q.Name)
			}
		}
	case api.DrainRegion:
		g.Op = control.DrainRegion
	case api.RemoveRegion:
		if g.Op = control.RemoveRegion; !q.Stopped {
			return control.Change{}, fmt.Errorf("region %q: stop all its daemons, and state that with --stopped: "+
				"if one still runs, limits are exceeded by what it admits", q.Name)
		}
	case api.RemoveDaemon:
		if !q.Stopped {
			return control.Change{}, fmt.Errorf("daemon %q: stop it, and state that with --stopped: "+
				"if it still runs, limits are exceeded by what it admits", q.Name)
		}
		id, err := r.stoppedID(q.Name)
		return control.Change{Dead: &control.DeadID{ID: id}}, err
	default:
		return control.Change{}, fmt.Errorf("unknown command %s: want one of %v", c, api.Commands())
	}
	return control.Change{Region: g}, nil
}

// heard reports whether a daemon of a region with a disk is heard.
func (r *Report) heard(region string) bool {
	s := r.Control.State()
	return r.reachedRegions(&s)[region]
}

// stoppedID returns the id of a daemon that is not heard, by its name or by its
// id.
func (r *Report) stoppedID(name string) (control.ID, error) {
	s := r.Control.State()
	var id control.ID
	if raw, err := hex.DecodeString(name); err == nil && len(raw) == len(id) {
		id = control.ID(raw)
	} else {
		var all []control.Heard
		r.Control.Do(func(n *control.Node) { all = control.RightsOf(n).Stopped(name) })
		if len(all) == 0 {
			return id, fmt.Errorf("no id of a daemon %q that stopped is known here: give the id, from its log or from rld cluster status", name)
		}
		if len(all) > 1 {
			return id, fmt.Errorf("daemon %q has had %d ids that stopped: give one of %v", name, len(all), all)
		}
		id = all[0].ID
	}
	if id == s.Status.ID {
		return id, errors.New("it is the id of this daemon: use another one")
	}
	for _, p := range s.Status.Peers {
		if p.Age >= 0 && p.Sender.ID == id {
			return id, fmt.Errorf("%s is heard: stop it first", p.Name)
		}
	}
	return id, nil
}

// nextOf describes what happens after a command.
func nextOf(c api.Command, name string) string {
	const settled = "rld budget shows when it is settled."
	switch c {
	case api.RemoveRegion:
		return fmt.Sprintf("The other regions get the rights of %s once all of them have acknowledged the epoch, in windows that "+
			"start at least ten seconds later. %s", name, settled)
	case api.RemoveDaemon:
		return fmt.Sprintf("The other daemons of its region get the rights of %s once all of them have acknowledged the epoch. "+
			"If it starts again, it joins under a new id. %s", name, settled)
	}
	return "The shares move once all regions have acknowledged the epoch. " + settled
}
