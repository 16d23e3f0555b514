package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/georld/rld/internal/load"
)

const (
	// durableKeys is how many keys of the owner are asked for.
	durableKeys = 1_000
	// durableFlight is how many checks are in flight: few enough that a disk
	// which is busy answers them in time.
	durableFlight = 128
	// strictHeadroom is the default of strict.headroom.
	strictHeadroom = 20
)

// The metrics of a daemon's journal.
const (
	journalWrites  = "rld_strict_journal_writes_total"
	journalEntries = "rld_strict_journal_entries_total"
)

// measureDurable compares the decisions a second of an owner about its strict
// keys, of which a majority of three has watermarks on disk, with those of the
// same daemon about keys that it counts in memory.
func measureDurable(ctx context.Context, b *bench) outcome {
	r := b.strict(ctx)
	keys := durableKeys
	if b.quick {
		keys /= 10
	}
	ask := asked{durableKey, r.usersOf(ctx, durableKey, keys, 0, true)}
	r.fill(ask, keys, 0)
	strict := job{Kind: kindStream, Ask: ask, Flight: durableFlight, Frame: hotFrame, Length: b.load / rateTurns}
	local := strict
	local.Ask = asked{}
	before := scrape(ctx, r.daemons...)
	decided := 0.0
	readings := interleave(ctx, b.rounds(3), rateTurns,
		func() float64 {
			res := r.ask(strict)
			decided += float64(res.Checks)
			return res.rate()
		},
		r.rate(local),
	)
	b.sawWatermarks(before, scrape(ctx, r.daemons...), decided, float64(keys))
	return compare(perSecond, load.Median, readings, "counted in memory")
}

// sawWatermarks fails unless the owner, whose samples come first, and others
// wrote watermarks for so many decisions about so many keys: no watermark
// ascends by much more than the headroom.
func (b *bench) sawWatermarks(before, after []sample, decisions, keys float64) {
	least := (decisions/strictHeadroom - keys) / 2
	b.noneFailed(before[:1], after[:1], decisions)
	writes, entries := grown(before[:1], after[:1], journalWrites), grown(before[:1], after[:1], journalEntries)
	if writes < 1 || entries < least {
		check(fmt.Errorf("%.0f writes of %.0f watermarks for %.0f decisions: not all of them were durable",
			writes, entries, decisions))
	}
	if grown(before[1:], after[1:], journalEntries) < least {
		check(errors.New("the owner alone wrote watermarks: no majority did"))
	}
}
