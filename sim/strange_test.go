package sim

import "testing"

// TestStrangePeersAreRejected has a daemon of each region send messages that
// none may send: no auditor notices, and daemons report that they reject them.
func TestStrangePeersAreRejected(t *testing.T) {
	for name, cfg := range map[string]*Config{"rights": hard(t, fixed), "strict": homed(t, strictFixed)} {
		cfg.Faults = []Fault{
			{Kind: StrangePeer, From: []string{"eu-0", "us-1"}},
			{Kind: LayoutChange, At: cfg.Duration / 3},
			{Kind: Amnesia, At: cfg.Duration / 2, For: ms, From: []string{"eu-2"}},
		}
		w, r, err := run(cfg, Options{Auditors: TestAuditors()})
		if err != nil {
			t.Fatal(err)
		}
		if w.network.traffic.Strange < 50 || r.Seen["rights_refused"]+r.Seen["strict_rejected"] == 0 {
			t.Errorf("%s: %d strange frames, events %v", name, w.network.traffic.Strange, r.Seen)
		}
		for _, a := range r.Auditors {
			if a.Violations > 0 {
				t.Errorf("%s: %s: %s", name, a.Name, a.First)
			}
		}
	}
}
