package daemon

import (
	"fmt"
	"github.com/georld/rld/daemon/overage"

	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/server/admin/api"
)

// command does what an operator says about agent.
func (f *rightsLoop) command(c api.Command, name string) (api.CommandAnswer, error) {
	var out api.CommandAnswer
	var err error
	f.do(func(o *agent.Agent) {
		var all []agent.EpochStatus
		switch c {
		case api.RetireRegion:
			err = o.RetireRegion(name)
			all = o.Status().Regions
		case api.ReturnRegion:
			err = o.ReturnRegion(name)
			all = o.Status().Regions
		case api.RetireDaemon:
			err = o.RetireDaemon(name)
			all = o.Status().Daemons
		default:
			err = fmt.Errorf("%s is no command: want one of %v", c, api.Commands())
		}
		if n := len(all); err == nil && n > 0 {
			out.Proposed = overage.EpochStates(all[n-1:])[0]
		}
	})
	if err != nil {
		return api.CommandAnswer{}, err
	}
	out.Next = next(c, name)
	f.log.Warn("an operator changed who holds rights", "event", "rights", "command", string(c), "name", name,
		"epoch", out.Proposed.ID)
	return out, nil
}

// next says what happens after a command.
func next(c api.Command, name string) string {
	const settles = "rld budget shows when it is settled."
	switch c {
	case api.RetireRegion:
		return fmt.Sprintf("The other regions take over what %s held once all of them have acknowledged this, in labels "+
			"that start ten seconds from now or later. Until then nobody holds more than before. The bound holds only "+
			"if no daemon of %s admits anything from then on. Before one is started again remove its file in rights.dir: "+
			"it goes by what it promised there until it hears of this. %s", name, name, settles)
	case api.ReturnRegion:
		return fmt.Sprintf("%s holds a part again once all regions have acknowledged this; the others give it up as they "+
			"do. From then on its part follows demand. %s", name, settles)
	}
	return fmt.Sprintf("The other daemons of the region take over what %s held once all of them have acknowledged this, in "+
		"labels that start ten seconds from now or later. The bound holds only if %s admits nothing from then on. Before it "+
		"is started again remove its file in rights.dir: it goes by what it promised there until it hears of this. Without "+
		"the file it is let in as a new daemon is. %s", name, name, settles)
}
