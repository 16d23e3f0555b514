package main

import (
	"context"
	"errors"
	"fmt"
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
func measureDurable(ctx context.Context, b *bench) (outcome, error) {
	r, err := b.strict(ctx)
	if err != nil {
		return outcome{}, err
	}
	keys := durableKeys
	if b.quick {
		keys /= 10
	}
	found, err := r.usersOf(ctx, durableKey, keys, 0, true)
	if err != nil {
		return outcome{}, err
	}
	ask := asked{durableKey, found}
	if err := r.fill(ask, keys, 0); err != nil {
		return outcome{}, err
	}
	strict := job{Kind: kindStream, Ask: ask, Flight: durableFlight, Frame: hotFrame, Length: b.load / rateTurns}
	local := strict
	local.Ask = asked{}
	before, err := scrape(ctx, r.daemons)
	if err != nil {
		return outcome{}, err
	}
	decided := 0.0
	readings, err := interleave(ctx, b.rounds(3), rateTurns,
		func() (float64, error) {
			res, err := r.ask(strict)
			decided += float64(res.Checks)
			return res.rate(), err
		},
		func() (float64, error) {
			res, err := r.ask(local)
			return res.rate(), err
		},
	)
	if err != nil {
		return outcome{}, err
	}
	if err := b.sawMarks(ctx, r, before, decided, float64(keys)); err != nil {
		return outcome{}, err
	}
	return compare(perSecond, median, readings, "counted in memory"), nil
}

// sawMarks fails unless a majority wrote watermarks for so many decisions about
// so many keys: no raise is for much more than a chunk.
func (b *bench) sawMarks(ctx context.Context, r *region, before []sample, decisions, keys float64) error {
	after, err := scrape(ctx, r.daemons)
	if err != nil {
		return err
	}
	least := (decisions/strictHeadroom - keys) / 2
	if err := b.noneFailed(before[0], after[0], decisions); err != nil {
		return err
	}
	for i := range r.daemons {
		entries, err := grown(before[i], after[i], journalEntries)
		if err != nil {
			return err
		}
		writes, err := grown(before[i], after[i], journalWrites)
		if err != nil {
			return err
		}
		if i == 0 && (writes < 1 || entries < least) {
			return fmt.Errorf("%.0f writes of %.0f watermarks for %.0f decisions: not all of them were durable",
				writes, entries, decisions)
		}
	}
	others, err := grownAll(before[1:], after[1:], journalEntries)
	if err != nil {
		return err
	}
	if others < least {
		return errors.New("the owner alone wrote watermarks: no majority did")
	}
	return nil
}
