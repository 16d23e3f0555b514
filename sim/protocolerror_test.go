package sim

import "testing"

// TestProtocolErrorsAreRejected has a daemon of each region send messages that
// none may send: no auditor notices, and daemons report that they reject them.
func TestProtocolErrorsAreRejected(t *testing.T) {
	for name, cfg := range map[string]*Config{"rights": hard(t, fixed), "strict": homed(t, strictFixed)} {
		cfg.Faults = []Fault{
			{Kind: ProtocolErrors, From: []string{"eu-0", "us-1"}},
			{Kind: LayoutChange, At: cfg.Duration / 3},
			{Kind: Amnesia, At: cfg.Duration / 2, For: ms, From: []string{"eu-2"}},
		}
		w, r, err := run(cfg, Options{Auditors: TestAuditors()})
		if err != nil {
			t.Fatal(err)
		}
		if w.network.traffic.ProtocolErrors < 15 || r.Seen["rights_refused"]+r.Seen["strict_rejected"] == 0 {
			t.Errorf("%s: %d frames to reject, events %v", name, w.network.traffic.ProtocolErrors, r.Seen)
		}
		for _, a := range r.Auditors {
			if a.Violations > 0 {
				t.Errorf("%s: %s: %s", name, a.Name, a.First)
			}
		}
	}
}
