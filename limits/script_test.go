package limits

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs testdata/scripts, which are the language by example.
//
//	parse [merge] [charge-denied] [regions=(us,eu)] [daemons=9] [of-region=3] [replicas=3] [alone] [no-rights]
//	one file, or several, each behind a line "-- NAME --"
//	----
//	the diagnostics, and the rules when there is no error
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "parse" {
				d.Fatalf(t, "unknown command %q", d.Cmd)
			}
			var o Options
			for _, a := range d.CmdArgs {
				switch a.Key {
				case "merge":
					o.MergeDomains = true
				case "charge-denied":
					o.ChargeDenied = true
				case "regions":
					o.Regions = a.Vals
				case "daemons":
					a.Scan(t, 0, &o.Daemons)
				case "of-region":
					a.Scan(t, 0, &o.DaemonsOfRegion)
				case "replicas":
					a.Scan(t, 0, &o.Replicas)
				case "alone":
					o.Alone = true
				case "no-rights":
					o.NoRights = "this daemon has no folder for them: give state.dir"
				default:
					d.Fatalf(t, "unknown argument %q", a.Key)
				}
			}
			set, faults := Parse(scriptFiles(d.Input), o)
			if (set == nil) != (faults.Err() != nil) {
				d.Fatalf(t, "set %v beside error %v", set, faults.Err())
			}
			out := faults.String()
			if set == nil {
				return out
			}
			return out + Describe(set)
		})
	})
}

// scriptFiles splits the input of a script into files; a single one is
// limits.yaml.
func scriptFiles(input string) []File {
	if !strings.HasPrefix(input, "-- ") {
		return []File{{Name: "limits.yaml", Data: []byte(input + "\n")}}
	}
	var files []File
	for line := range strings.Lines(input + "\n") {
		if name, ok := strings.CutPrefix(line, "-- "); ok {
			files = append(files, File{Name: strings.TrimSuffix(name, " --\n")})
			continue
		}
		last := &files[len(files)-1]
		last.Data = append(last.Data, line...)
	}
	return files
}
