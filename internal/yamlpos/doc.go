// Package yamlpos reads YAML into nodes with positions, and reports faults with
// file, line, column, the offending line and a hint. The limits, the settings
// and the scenarios of the simulator are read with it.
//
// Parse turns the one document of a file into a tree of Nodes. A Collector
// makes Readers, which read one value into one variable, check its type and
// range, and add a Diagnostic where they cannot:
//
//	var c yamlpos.Collector
//	var name string
//	var wait time.Duration
//	if root := c.Parse("job.yaml", data, yamlpos.Options{MaxBytes: 1 << 20}); root != nil {
//		c.Fields(root, "a job",
//			yamlpos.Field{Name: "name", Read: c.Text(&name)},
//			yamlpos.Field{Name: "wait", Read: c.Duration(&wait, 0, time.Hour)})
//	}
//	return c.List().Err()
//
// Input is untrusted: its size, its nesting and the values that its aliases
// expand to are bounded. Scalars are read as YAML 1.1, as
// envoyproxy/ratelimit reads them.
package yamlpos
