package control

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// thousandRules returns limits as operators write them: 1,000 rules in 20
// files. Editions differ in some of their rules.
func thousandRules(edition uint64) []RuleFile {
	rng := rand.New(rand.NewPCG(1, 1))
	changed := rand.New(rand.NewPCG(edition, 2))
	var files []RuleFile
	for f := range 20 {
		var b strings.Builder
		fmt.Fprintf(&b, "domain: service-%d\ndefaults: {algorithm: sliding_window, overage_budget: 5%%}\ndescriptors:\n", f)
		for i := range 50 {
			requests := 10 + rng.IntN(10_000)
			if changed.IntN(20) == 0 {
				requests = 10 + changed.IntN(10_000)
			}
			fmt.Fprintf(&b, "  # owner: team-%d, ticket OPS-%d\n  - key: tenant\n    value: customer-%08x\n    descriptors:\n      - key: path\n        value: /v%d/%x\n        rate_limit: {unit: minute, requests_per_unit: %d}\n",
				rng.IntN(30), rng.IntN(100_000), rng.Uint32(), i%3, rng.Uint32(), requests)
		}
		files = append(files, RuleFile{Name: fmt.Sprintf("service-%d.yaml", f), Text: b.String()})
	}
	return files
}

// fullRecord returns a record of a large cluster with a long history: 1,000
// rules in ten versions, 1,000 commands and as many outcomes.
func fullRecord(t *testing.T) *Record {
	r := (&Founding{Cluster: 1, Regions: even("a", "b", "c"), Founders: []Founder{{Name: "a-0", Region: "a", Raft: 1}}}).record()
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range maxSets {
		set, err := NewRuleSet(thousandRules(uint64(i)))
		if err != nil {
			t.Fatal(err)
		}
		r.Version.Index++
		if err := r.Limits.apply(&RulesChange{Set: set, Sizes: []RegionSize{{"a", 70}, {"b", 70}, {"c", 60}}}, r.Version, 1); err != nil {
			t.Fatal(err)
		}
		if err := r.Limits.bringIntoForce(&InForce{Version: r.Version, From: 1, Over: 1}, 1<<30); err != nil {
			t.Fatal(err)
		}
	}
	for i := range maxHistory {
		c := Command{
			Request: Number(rng.Uint64()), Version: Version{r.Version.Recovery, uint64(i)}, At: 1_700_000_000_000 + rng.Int64N(1<<40),
			Author: fmt.Sprintf("operator-%d@example.com", rng.IntN(20)), Reason: fmt.Sprintf("OPS-%d: too many calls of a customer", rng.IntN(100_000)),
			Text: fmt.Sprintf("rule %q of domain %q has requests=%d for 2h0m0s", fmt.Sprintf("tenant=customer-%08x", rng.Uint32()), "service-3", rng.IntN(10_000)),
		}
		r.remember(c)
		r.conclude(Outcome{Request: c.Request, Version: c.Version})
	}
	if err := r.validate(); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRecordBytes checks the bytes that a voter stores for 1,000 rules and 200
// daemons:
// the record, and the snapshot of raft, which contains it once more.
func TestRecordBytes(t *testing.T) {
	r := fullRecord(t)
	base := stored{Base: r.Encode()}
	snap := stored{Of: 1, Snapshot: &snapshot{Index: 1, Term: 1, Voters: []uint64{1}, Record: r.Encode()}}
	disk := len(base.encode()) + len(snap.encode())
	t.Logf("%d rule sets of %d bytes, %d compressed; the record has %d bytes in JSON and %d as it is sent; a voter stores %d",
		len(r.Limits.Sets), r.Limits.Sets[0].Bytes, len(r.Limits.Sets[0].Data), len(r.Encode()), len(pack(r.Encode())), disk)
	if disk > 1_000_000 {
		t.Errorf("a voter stores %d bytes, want at most 1 MB", disk)
	}
	if len(r.Limits.Sets) != maxSets {
		t.Errorf("%d rule sets are kept, want %d", len(r.Limits.Sets), maxSets)
	}
	again, err := unpackRecord(pack(r.Encode()), Format)
	if err != nil || again.Hash() != r.Hash() {
		t.Fatalf("the packed record is another one: %v", err)
	}
}

// TestRuleSetBounds checks rule sets at and beyond their bounds. Refusals name
// the sizes.
func TestRuleSetBounds(t *testing.T) {
	lines := strings.Repeat("  - {key: tenant, value: customer-1, rate_limit: {unit: minute, requests_per_unit: 100}}\n", MaxSetBytes/100)
	var random strings.Builder
	rng := rand.New(rand.NewPCG(1, 1))
	for random.Len() < 2<<20 {
		fmt.Fprintf(&random, "%016x\n", rng.Uint64())
	}
	for _, tc := range []struct {
		name  string
		files []RuleFile
		want  string
	}{
		{"none", nil, ""},
		{"large", []RuleFile{{"a", lines}}, ""},
		{"too large", []RuleFile{{"a", lines}, {"b", lines}}, "2 limits files with 7465854 bytes: want at most 1000 with 4194304"},
		{"too large compressed", []RuleFile{{"a", random.String()}}, "compressed: want at most 716800 compressed"},
		{"twice", []RuleFile{{"a", ""}, {"a", ""}}, "limits file a is there twice"},
		{"no name", []RuleFile{{"", ""}}, "want a name"},
		{"no UTF-8", []RuleFile{{"a", "\xff"}}, "limits file a: want UTF-8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set, err := NewRuleSet(tc.files)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("error %v, want %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			files, err := set.Files()
			if err != nil || len(files) != len(tc.files) {
				t.Fatalf("%d files and error %v, of %d", len(files), err, len(tc.files))
			}
		})
	}
	set, err := NewRuleSet([]RuleFile{{"a", "text"}})
	if err != nil {
		t.Fatal(err)
	}
	set.Data = []byte(`[{"name":"a","text":"other"}]`)
	if _, err := set.Files(); err == nil {
		t.Error("files with another hash are accepted")
	}
}

// TestRecordTooLarge checks that a change is refused whose record would exceed
// its bound, with the sizes, and that nothing changes.
func TestRecordTooLarge(t *testing.T) {
	r := fullRecord(t)
	rng := rand.New(rand.NewPCG(4, 4))
	for i := range MaxOverrides {
		o := Override{Version: r.Version, From: 1, For: 1 << 20, Until: 1 << 50, Reason: randomText(rng, 600)}
		o.Key, o.Block = fmt.Sprintf("%016x", i), true
		r.Limits.Overrides = append(r.Limits.Overrides, o)
	}
	e := r.entry(&Request{ID: 7, Author: "operator", Change: Change{Note: &Note{Text: "one more"}}})
	before := r.Hash()
	_, err := r.check(e)
	if err == nil || !strings.Contains(err.Error(), "compressed: want at most") {
		t.Fatalf("error %v, want one with the sizes", err)
	}
	if r.Hash() != before {
		t.Error("the record changed")
	}
}

// randomText returns letters that cannot be compressed well.
func randomText(rng *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + rng.IntN(26))
	}
	return string(b)
}
