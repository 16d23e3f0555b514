package rlqs

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// TestElapsed reads the time of a report. Envoy sends 0 in its first one.
func TestElapsed(t *testing.T) {
	for _, tt := range []struct {
		in   *durationpb.Duration
		want time.Duration
		text string
	}{
		{nil, 0, ""},
		{durationpb.New(0), 0, ""},
		{durationpb.New(3 * time.Second), 3 * time.Second, ""},
		{durationpb.New(-time.Second), 0, "bucket_quota_usages 0: time_elapsed is -1s, want 0 or more"},
		{&durationpb.Duration{Seconds: 1, Nanos: -1}, 0, "bucket_quota_usages 0: time_elapsed"},
		{&durationpb.Duration{Seconds: 1 << 60}, 0, "bucket_quota_usages 0: time_elapsed"},
	} {
		m := reports("edge", 1, 0)
		m.BucketQuotaUsages[0].TimeElapsed = tt.in
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		_, usages, err := read(string(b), "")
		switch {
		case tt.text != "":
			if err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%v: %v, want %q", tt.in, err, tt.text)
			}
		case err != nil || usages[0].Elapsed != tt.want:
			t.Errorf("%v: %v, %v", tt.in, usages, err)
		}
	}
}

// FuzzRead reads any bytes as a message.
func FuzzRead(f *testing.F) {
	b, err := proto.Marshal(reports("edge", 1, 2))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b), "")
	f.Add("\n\x04edge", "other")
	f.Fuzz(func(t *testing.T, text, domain string) {
		in, usages, err := read(text, domain)
		if err != nil {
			return
		}
		if in == "" || domain != "" && in != domain || len(usages) == 0 {
			t.Errorf("domain %q, then %q, %d reports", domain, in, len(usages))
		}
		for _, u := range usages {
			if len(u.ID) == 0 || u.Elapsed < 0 {
				t.Errorf("%+v", u)
			}
		}
	})
}
