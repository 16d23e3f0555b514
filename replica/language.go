package replica

import (
	"github.com/georld/rld/control"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
)

// Language returns the limits language as the control log of a daemon of a
// region needs it. The numbers of daemons and the names of regions come from
// the log. All else of the options must be the same at all daemons.
func Language(region string, o limits.Options) control.Language {
	o.Regions, o.Daemons, o.DaemonsOfRegion = nil, 0, 0
	return control.Language{
		Parse: func(files []control.RuleFile, sizes []control.RegionSize) (*rules.Set, error) {
			own := o
			for _, s := range sizes {
				own.Regions = append(own.Regions, s.Name)
				own.Daemons += s.Daemons
				if s.Name == region {
					own.DaemonsOfRegion = s.Daemons
				}
			}
			in := make([]limits.File, len(files))
			for i, f := range files {
				in[i] = limits.File{Name: f.Name, Data: []byte(f.Text)}
			}
			set, found := limits.Parse(in, own)
			return set, found.Err()
		},
		Check: func(l *rules.Limit, sizes []control.RegionSize) error {
			own := o
			for _, s := range sizes {
				own.Regions = append(own.Regions, s.Name)
			}
			return limits.Check(l, own)
		},
	}
}
