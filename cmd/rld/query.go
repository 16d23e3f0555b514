package main

import (
	"context"
	"errors"
	"io"
	"net/url"

	"github.com/spf13/cobra"
)

// query is a page of the admin listener with an answer A.
type query[A any] struct {
	path string
	// values returns the query of the page for the arguments of the command,
	// nil for none. A body makes it a command.
	values func(args []string) url.Values
	body   any
	// lacks names a part that the answer of every daemon has and this one has
	// not, "" for none. Nil means that any answer is one.
	lacks func(*A) string
	// text formats the answer for people.
	text func(*A) string
	// verdict returns the error of a command whose answer was printed. Nil
	// means that there is none.
	verdict func(*A) error
}

// unless returns the text of a missing part, "" for one that is there.
func unless(has bool, part string) string {
	if has {
		return ""
	}
	return "no " + part
}

// ask returns the answer of a daemon.
func (q query[A]) ask(ctx context.Context, a *adminClient, args []string) (*A, error) {
	page := url.URL{Path: q.path}
	if q.values != nil {
		page.RawQuery = q.values(args).Encode()
	}
	answer := new(A)
	if err := a.ask(ctx, page, q.body, answer); err != nil {
		return nil, err
	}
	if q.lacks != nil {
		if part := q.lacks(answer); part != "" {
			return nil, a.notRLD(q.path, errors.New(part))
		}
	}
	return answer, nil
}

// print asks and prints the answer in the selected form.
func (q query[A]) print(ctx context.Context, w io.Writer, a *adminClient, args []string) (*A, error) {
	answer, err := q.ask(ctx, a, args)
	if err != nil {
		return nil, err
	}
	if a.form == formJSON {
		return answer, indented(w, answer)
	}
	_, err = io.WriteString(w, q.text(answer))
	return answer, err
}

// command makes cmd ask and print the answer.
func (q query[A]) command(p process, cmd *cobra.Command) *cobra.Command {
	var a adminClient
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.settle(cmd, p.environ); err != nil {
			return err
		}
		answer, err := q.print(cmd.Context(), p.out, &a, args)
		if err != nil || q.verdict == nil {
			return exitWith(exitNoneOf, err)
		}
		return exitWith(exitNo, q.verdict(answer))
	}
	a.addFlags(cmd)
	return cmd
}
