package callers

import (
	"log/slog"

	"github.com/georld/rld/config"
	"github.com/georld/rld/daemon/follow"
	"github.com/georld/rld/server/auth"
)

// tokensFile follows a tokens file.
type tokensFile struct {
	*follow.File[auth.Tokens]
	authorizer *auth.Authorizer
}

func openTokens(kind config.TokensOf, path string, log *slog.Logger) (*tokensFile, error) {
	t := &tokensFile{}
	file, tokens, err := follow.Open(follow.Source[auth.Tokens]{
		Read: func() (data []byte, tokens auth.Tokens, err error) {
			if data, err = kind.ReadFile(path); err == nil {
				tokens, err = kind.Parse(path, data)
			}
			return data, tokens, err
		},
		Apply: func(tokens auth.Tokens) {
			t.authorizer.Replace(tokens)
			log.Info("tokens changed", "event", "auth", "setting", string(kind), "tokens", len(tokens))
		},
		Refused: func(err error) {
			log.Error("the tokens file is invalid: the former tokens stay in force", "event", "auth", "setting", string(kind), "error", err)
		},
	})
	if err != nil {
		return nil, err
	}
	t.File, t.authorizer = file, auth.NewAuthorizer(tokens, log)
	return t, nil
}
