package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Profile is the name of a network between regions.
type Profile string

// The profiles.
const (
	// Global puts the regions as far apart as they are on the globe.
	Global Profile = "global"
	// Fast puts 5 ms between them, one way.
	Fast Profile = "fast"
	// None puts nothing between them; they can still be cut.
	None Profile = "none"
)

// jitterShare is the part of a delay that is drawn on top of it.
const jitterShare = 10

// globalDelays is the time between the large data centers of the world, one
// way: half of the round trips that their operators publish, rounded.
var globalDelays = map[[2]string]time.Duration{
	{"eu", "us"}: 40 * time.Millisecond,
	{"ap", "us"}: 90 * time.Millisecond,
	{"ap", "eu"}: 65 * time.Millisecond,
	{"af", "us"}: 115 * time.Millisecond,
	{"af", "eu"}: 75 * time.Millisecond,
	{"af", "ap"}: 110 * time.Millisecond,
	{"sa", "us"}: 60 * time.Millisecond,
	{"eu", "sa"}: 95 * time.Millisecond,
	{"ap", "sa"}: 150 * time.Millisecond,
	{"af", "sa"}: 170 * time.Millisecond,
}

const (
	// sameContinent is between two regions whose names begin alike.
	sameContinent = 30 * time.Millisecond
	// elsewhere is the delay between regions with unknown names.
	elsewhere = 80 * time.Millisecond
	// globalLoss is the share of chunks that are lost on the way.
	globalLoss = 0.0005
)

// Link returns how the profile joins two regions. Global goes by how their
// names begin: us-, eu-, ap-, sa-, af-.
func (p Profile) Link(a, b string) Link {
	switch p {
	case Fast:
		return withJitter(5*time.Millisecond, 0)
	case None:
		return Link{}
	}
	from, _, _ := strings.Cut(a, "-")
	to, _, _ := strings.Cut(b, "-")
	if from == to {
		return withJitter(sameContinent, globalLoss)
	}
	if d, ok := globalDelays[between(from, to)]; ok {
		return withJitter(d, globalLoss)
	}
	return withJitter(elsewhere, globalLoss)
}

func withJitter(d time.Duration, loss float64) Link {
	return Link{Delay: d, Jitter: d / jitterShare, Loss: loss}
}

// String, Set and Type make a Profile a flag.
func (p *Profile) String() string { return string(*p) }

// Set takes one of the profiles.
func (p *Profile) Set(s string) error {
	if known := []Profile{Global, Fast, None}; !slices.Contains(known, Profile(s)) {
		return fmt.Errorf("use %s, %s or %s", Global, Fast, None)
	}
	*p = Profile(s)
	return nil
}

// Type is the name of the value in the help.
func (p *Profile) Type() string { return "profile" }
