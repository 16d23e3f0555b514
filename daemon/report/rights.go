package report

import (
	"fmt"
	"log/slog"

	"github.com/georld/rld/daemon/overage"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/server/admin/api"
)

// RightsCommand executes a command about rights. with runs a function on the
// rights agent and makes it send soon.
func RightsCommand(
	with func(func(*agent.Agent)), log *slog.Logger, c api.Command, name string,
) (api.CommandAnswer, error) {
	var all []agent.EpochStatus
	var err error
	with(func(a *agent.Agent) {
		switch c {
		case api.RetireRegion:
			err = a.RetireRegion(name)
			all = a.Status().Regions
		case api.ReturnRegion:
			err = a.ReturnRegion(name)
			all = a.Status().Regions
		case api.RetireDaemon:
			err = a.RetireDaemon(name)
			all = a.Status().Daemons
		default:
			err = fmt.Errorf("unknown command %s: want one of %v", c, api.Commands())
		}
	})
	if err != nil {
		return api.CommandAnswer{}, err
	}
	out := api.CommandAnswer{Next: afterCommand(c, name)}
	if n := len(all); n > 0 {
		out.Proposed = overage.EpochStates(all[n-1:])[0]
	}
	log.Warn("an operator changed the shares of the rights", "event", "rights", "command", string(c), "name", name,
		"epoch", out.Proposed.ID)
	return out, nil
}

// afterCommand describes what happens after a command.
func afterCommand(c api.Command, name string) string {
	const settled = "rld budget shows when it is settled."
	switch c {
	case api.RetireRegion:
		return fmt.Sprintf("The other regions get the rights of %s once all of them have acknowledged the epoch, in windows "+
			"that start at least ten seconds later. Until then no region gets more. The bound holds only if no daemon of %s "+
			"admits anything from then on. Before you start one again, remove its file in state.dir: it relies on the "+
			"promises in it until it receives the epoch. %s", name, name, settled)
	case api.ReturnRegion:
		return fmt.Sprintf("%s gets a share again once all regions have acknowledged the epoch; the others give it up at the "+
			"same time. From then on its share follows demand. %s", name, settled)
	}
	return fmt.Sprintf("The other daemons of the region get the rights of %s once all of them have acknowledged the epoch, in "+
		"windows that start at least ten seconds later. The bound holds only if %s admits nothing from then on. Before you "+
		"start it again, remove its file in state.dir: it relies on the promises in it until it receives the epoch. "+
		"Without the file it joins as a new daemon. %s", name, name, settled)
}
