package daemon

import (
	"slices"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/replica"
)

// takeUp takes the accounts that the former run left, once, and removes their
// file: after the files and listeners that may refuse the start, which leaves
// them to the next one, and before the first call. The nodes count their use as
// their own. They and the agent use the rights of the former run if the agent
// begins with its record and the start is confirmed.
func (d *daemon) takeUp() {
	f := d.agent
	if f == nil || f.lock == nil {
		return
	}
	left, err := f.storage.TakeAccounts()
	switch {
	case err != nil:
		d.Log.Warn("the accounts of the former run cannot be used: this daemon holds no rights in its windows",
			"event", "accounts", "error", err)
	case left == nil:
	case !slices.Contains(printsOf(d.engine.hashers()), left.Hash):
		d.Log.Warn("the accounts of the former run are of another secret: this daemon holds no rights in its windows",
			"event", "accounts")
	default:
		d.engine.visit(func(_ int, n *node.Node) { n.TakeUp(&left.Accounts, left.Until) })
		left.Accounts.Keys = nil // the nodes have them
		f.left, f.resume = left, func() { d.engine.visit(func(_ int, n *node.Node) { n.Resume() }) }
	}
}

// resumes reports whether the agent that begins with a record may use the
// windows of the run that stored it. It does so once. The nodes use them once
// the start is confirmed: until then the disk may be an old one.
func (f *rightsLoop) resumes(record *agent.Stored) bool {
	left := f.left
	f.left = nil
	if left == nil {
		f.resume = nil
		return false
	}
	if !left.Of(record) {
		f.resume = nil
		f.log.Warn("the accounts of the former run are not those of the record of rights: this daemon holds no rights in its windows",
			"event", "accounts")
		return false
	}
	f.log.Info("this daemon goes on with the accounts of its former run", "event", "accounts")
	return true
}

// leave stores the accounts for the next run, after the last decision and the
// last transfer. Without an agent whose rights have ended on disk it stores
// none: the record there may be that of a former run, whose use is not known.
func (f *rightsLoop) leave(e *Engine) {
	if !read(f, (*agent.Agent).Stopped) {
		return
	}
	record, _, err := f.storage.OpenRights()
	if err != nil || record == nil || !record.Stopped() {
		return
	}
	left := &replica.Leftover{
		Self: record.Local.Owner, Generation: record.Region.Owner, Until: record.Until(), Hash: printsOf(e.hashers())[0],
	}
	room := true
	e.visit(func(_ int, n *node.Node) { room = room && n.HandOn(e.Now(), &left.Accounts) })
	if !room {
		f.log.Warn("the next run holds no rights in the windows of this one: it has more accounts than are stored",
			"event", "accounts", "most", node.MaxAccounts)
		return
	}
	if err := f.storage.StoreAccounts(left); err != nil {
		f.log.Warn("the next run holds no rights in the windows of this one: its accounts cannot be stored",
			"event", "accounts", "error", err)
		return
	}
	f.log.Info("the accounts of rights are stored for the next run", "event", "accounts", "accounts", len(left.Accounts.Keys))
}
