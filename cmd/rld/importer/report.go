// Package importer checks whether rld can replace a deployment of
// envoyproxy/ratelimit: its files of limits, and the environment of its pods.
// It changes nothing and asks no daemon.
package importer

import (
	"errors"
	"strings"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/internal/yamlpos"
)

// Options selects a deployment.
type Options struct {
	Path string // the file or folder of limits, "" for limits of an xDS server
	// Env is the content of a file with the environment of the deployment, and
	// EnvName its name for messages, "" for none.
	Env     []byte
	EnvName string

	// Regions is the number of regions that rld will run in, and Staleness the
	// expected age of the views of other regions. They select budgets.
	Regions   int
	Staleness time.Duration
}

// Report describes a deployment in rld. Its lists are not nil.
type Report struct {
	OK    bool     `json:"ok"`
	Stops []string `json:"stops"` // a daemon does not start before these are solved
	Notes []string `json:"notes"` // what else differs

	Files       []File               `json:"files"`
	Faults      yamlpos.Diagnostics  `json:"faults"`      // of the files
	Differences []yamlpos.Diagnostic `json:"differences"` // what rld reads in another way, or without effect
	Limits      []Limit              `json:"limits"`
	Environment []Variable           `json:"environment"`
}

// File is a file of limits.
type File struct {
	Name string `json:"name"`
	// State is unchanged for a file that rld loads as it is, else refused.
	State string `json:"state"`
	Rules int    `json:"rules"` // of an unchanged file
}

// The states of a file.
const (
	unchanged = "unchanged"
	refused   = "refused"
)

// Run reads a deployment. It returns an error if there is nothing to report:
// for a path that cannot be read, an empty folder, and an environment that is
// not understood.
func Run(o Options) (*Report, error) {
	r := &Report{
		Stops: []string{}, Notes: []string{}, Files: []File{}, Faults: yamlpos.Diagnostics{},
		Differences: []yamlpos.Diagnostic{}, Limits: []Limit{}, Environment: []Variable{},
	}
	// As the reference reads files where its environment is not known.
	c := config.Default()
	c.Limits.Names = config.NamesAll
	if o.EnvName != "" {
		vars, notes, err := readEnvironment(o.EnvName, o.Env)
		if err != nil {
			return nil, err
		}
		r.Notes = append(r.Notes, notes...)
		if loaded := r.environment(o.EnvName, vars); loaded != nil {
			if from := string(loaded.Origin("limits.path")); loaded.Config.Limits.Path != "" && !strings.HasPrefix(from, "env ") {
				r.Notes = append(r.Notes, "no variable names the limits: a daemon reads them from "+loaded.Config.Limits.Path+
					", as the reference does, and does not start without that folder")
			}
			names := c.Limits.Names
			c = loaded.Config
			if c.Limits.Names == config.NamesYAML {
				c.Limits.Names = names
			}
		}
	}
	switch xds := c.Limits.XDS.On(); {
	case o.Path == "" && !xds:
		return nil, errors.New("no limits: give the path of the files, or an environment with CONFIG_TYPE=GRPC_XDS_SOTW")
	case o.Path == "":
		r.Notes = append(r.Notes, "limits come from the xDS server "+c.Limits.XDS.Server+
			": rld refuses what does not load, and keeps the former limits; budgets go into limits.xds.overlay")
	default:
		if xds {
			r.Notes = append(r.Notes, "limits come from the xDS server "+c.Limits.XDS.Server+": a daemon does not read the files")
		}
		if err := r.limits(&o, &c.Limits); err != nil {
			return nil, err
		}
	}
	if !c.Limits.ChargeDenied && !r.stopsCharging() {
		r.Notes = append(r.Notes, "denied hits are not charged, and the reference charges them: RLD_CHARGE_DENIED=true does it, too")
	}
	r.Notes = append(r.Notes, "counts start empty: they are in the memory of the daemons, and nothing is read from Redis or memcached")
	r.OK = len(r.Stops) == 0
	return r, nil
}
