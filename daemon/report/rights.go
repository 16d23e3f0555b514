package report

import (
	"errors"
	"log/slog"

	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/server/admin/api"
)

// RightsCommand executes a command about rights. with runs a function on the
// rights agent and makes it send soon.
func RightsCommand(func(func(*agent.Agent)), *slog.Logger, api.Command, string) (api.CommandAnswer, error) {
	return api.CommandAnswer{}, errors.New("commands about rights are entries of the control log")
}
