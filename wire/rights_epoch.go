package wire

import (
	"slices"

	"github.com/georld/rld/hlc"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/quota/epoch"
)

// Conversions of the types of package epoch.

// rightsReader converts decoded messages about rights, and keeps the first
// fault. After a fault its results have no meaning.
type rightsReader struct{ fault }

func rightsID(id epoch.ID) *rldv1.RightsID {
	if id == (epoch.ID{}) {
		return nil
	}
	return &rldv1.RightsID{Stamp: uint64(id.Stamp), Proposer: id.Proposer}
}

func idOf(id *rldv1.RightsID) epoch.ID {
	return epoch.ID{Stamp: hlc.Timestamp(id.GetStamp()), Proposer: id.GetProposer()}
}

// rightsIDs encodes the genesis as an ID of zeros: a list has no absent items.
func rightsIDs(ids []epoch.ID) []*rldv1.RightsID {
	return listOf(ids, func(id *epoch.ID) *rldv1.RightsID {
		return &rldv1.RightsID{Stamp: uint64(id.Stamp), Proposer: id.Proposer}
	})
}

func idsOf(ids []*rldv1.RightsID) []epoch.ID { return fromList(ids, idOf) }

func rightsEpoch(e *epoch.Epoch) *rldv1.RightsEpoch {
	out := &rldv1.RightsEpoch{Id: rightsID(e.ID), Pred: rightsID(e.Pred), HorizonMs: e.Horizon}
	for _, m := range e.Members {
		out.Members = append(out.Members, m.ID)
		out.Amounts = append(out.Amounts, m.Amount)
		if m.Diskless {
			out.Diskless = append(out.Diskless, m.ID)
		}
	}
	for _, r := range e.Retired {
		out.Retired = append(out.Retired, r.ID)
		out.RetiredFromMs = append(out.RetiredFromMs, r.From)
	}
	for _, r := range e.Rules {
		out.Rules = append(out.Rules, r.Rule)
		out.Shares = append(out.Shares, r.Shares...)
	}
	return out
}

func (c *rightsReader) epoch(e *rldv1.RightsEpoch) epoch.Epoch {
	if e == nil {
		c.fail("no epoch where one belongs")
		return epoch.Epoch{}
	}
	out := epoch.Epoch{ID: idOf(e.Id), Pred: idOf(e.Pred), Horizon: e.HorizonMs}
	n := len(e.Members)
	if len(e.Amounts) != n || len(e.RetiredFromMs) != len(e.Retired) || len(e.Shares) != n*len(e.Rules) {
		c.fail("epoch of %d members with %d amounts, %d retired with %d windows, "+
			"%d rules with %d amounts: want one each", n, len(e.Amounts), len(e.Retired), len(e.RetiredFromMs),
			len(e.Rules), len(e.Shares))
		return out
	}
	diskless := e.Diskless
	for i, id := range e.Members {
		m := epoch.Member{ID: id, Amount: e.Amounts[i], Diskless: len(diskless) > 0 && diskless[0] == id}
		if m.Diskless {
			diskless = diskless[1:]
		}
		out.Members = append(out.Members, m)
	}
	if len(diskless) > 0 {
		c.fail("%d without a disk in epoch %s: want members, in their order", len(diskless), out.ID)
	}
	for i, id := range e.Retired {
		out.Retired = append(out.Retired, epoch.Retirement{ID: id, From: e.RetiredFromMs[i]})
	}
	for i, rule := range e.Rules {
		out.Rules = append(out.Rules, epoch.RuleShares{Rule: rule, Shares: e.Shares[i*n : (i+1)*n : (i+1)*n]})
	}
	return out
}

func rightsAck(a *epoch.Ack) *rldv1.RightsAck {
	out := &rldv1.RightsAck{
		Id: rightsID(a.ID), By: a.By, FromMs: a.From,
		Before: rightsIDs(a.Before), FloorMs: a.Floor, Held: rightsHeld(a.Held),
	}
	for _, r := range a.Horizons {
		out.HorizonIds = append(out.HorizonIds, r.ID)
		out.HorizonUntilMs = append(out.HorizonUntilMs, r.Until)
	}
	return out
}

func (c *rightsReader) ack(a *rldv1.RightsAck) epoch.Ack {
	if a == nil || len(a.HorizonIds) != len(a.HorizonUntilMs) {
		c.fail("acknowledgement with %d participants and %d windows: want one each",
			len(a.GetHorizonIds()), len(a.GetHorizonUntilMs()))
		return epoch.Ack{}
	}
	out := epoch.Ack{
		ID: idOf(a.Id), By: a.By, From: a.FromMs,
		Before: idsOf(a.Before), Floor: a.FloorMs, Held: heldOf(a.Held),
	}
	for i, id := range a.HorizonIds {
		out.Horizons = append(out.Horizons, epoch.Horizon{ID: id, Until: a.HorizonUntilMs[i]})
	}
	return out
}

// regionsTable is the number of the table of regions in a dependency, the only
// table that others depend on.
const regionsTable = 1

func rightsHeld(held []epoch.ID) []*rldv1.RightsDependency {
	return listOf(held, func(id *epoch.ID) *rldv1.RightsDependency {
		return &rldv1.RightsDependency{Table: regionsTable, Id: rightsID(*id)}
	})
}

func heldOf(held []*rldv1.RightsDependency) []epoch.ID {
	held = slices.DeleteFunc(held, func(h *rldv1.RightsDependency) bool { return h.Table != regionsTable })
	return fromList(held, func(h *rldv1.RightsDependency) epoch.ID { return idOf(h.Id) })
}
