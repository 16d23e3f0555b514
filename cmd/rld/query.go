package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/url"

	"github.com/spf13/cobra"
)

// query is a page of the admin listener with an answer A.
type query[A any] struct {
	path string
	// request returns the query of the page and its body for the arguments of
	// the command. A body makes it a command. The error is one of usage. Nil
	// means that there is neither.
	request func(args []string) (values url.Values, body any, err error)
	// lacks names a part that the answer of every daemon has and this one has
	// not, "" for none. Nil means that any answer is one.
	lacks func(*A) string
	// text formats the answer for people.
	text func(*A) string
	// verdict returns the error of a command whose answer was printed. Nil
	// means that there is none.
	verdict func(*A) error
	// failed is the exit code without an answer, 0 for exitNoneOf.
	failed int
}

// unless returns the text of a missing part, "" for one that is there.
func unless(has bool, part string) string {
	if has {
		return ""
	}
	return "no " + part
}

// ask returns the answer of a daemon. An error of usage is none of
// exitError.
func (q query[A]) ask(ctx context.Context, a *adminClient, args []string) (*A, error) {
	page, body := url.URL{Path: q.path}, any(nil)
	if q.request != nil {
		values, content, err := q.request(args)
		if err != nil {
			return nil, err
		}
		page.RawQuery, body = values.Encode(), content
	}
	answer := new(A)
	err := a.ask(ctx, page, body, answer)
	if err == nil && q.lacks != nil {
		if part := q.lacks(answer); part != "" {
			err = a.notRLD(q.path, errors.New(part))
		}
	}
	return answer, exitWith(cmp.Or(q.failed, exitNoneOf), err)
}

// print asks and prints the answer in the selected form.
func (q query[A]) print(ctx context.Context, w io.Writer, a *adminClient, args []string) error {
	answer, err := q.ask(ctx, a, args)
	if err != nil {
		return err
	}
	if a.form.json {
		err = indented(w, answer)
	} else {
		_, err = io.WriteString(w, q.text(answer))
	}
	if err != nil || q.verdict == nil {
		return exitWith(cmp.Or(q.failed, exitNoneOf), err)
	}
	return exitWith(exitNo, q.verdict(answer))
}

// command makes cmd ask and print the answer.
func (q query[A]) command(p process, cmd *cobra.Command) *cobra.Command {
	var a adminClient
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.settle(cmd, p.environ); err != nil {
			return err
		}
		return q.print(cmd.Context(), p.out, &a, args)
	}
	a.addFlags(cmd)
	return cmd
}
