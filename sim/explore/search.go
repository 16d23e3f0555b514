package explore

import (
	"fmt"
	"slices"
	"time"
)

// wallBase is the wall time of virtual time 0, Unix ns: 2026-01-01.
const wallBase = int64(1_767_225_600) * int64(time.Second)

// moment is a state of the whole cluster.
type moment struct {
	at   [maxScopeDaemons]int32 // the history of each daemon
	tick int16
	net  []flying
}

// flying is a frame that may still arrive, left times.
type flying struct {
	frame int32
	left  uint8
}

// action is a step of the cluster: an input of all daemons if it is a tick,
// else of one. arg is the daemon, or the frame that arrives.
type action struct {
	kind inputKind
	arg  int32
}

// warmUp starts the daemons and lets them discover each other. All their
// messages arrive.
func (e *explorer) warmUp() (m moment, err error) {
	e.base = wallBase
	if e.scope.Roll > 0 {
		e.base += e.width()*int64(time.Millisecond) - int64(e.now(warmTicks+int16(e.scope.Roll)))
	} else if !e.scope.fold().Drains() {
		e.base += int64(e.tick) // not on the edge
	}
	for d := range e.names {
		if m.at[d], err = e.after(noHistory, d, input{kind: inStart}); err != nil {
			return m, err
		}
		m.net = e.sentBy(m.net, m.at[d])
	}
	for range warmTicks {
		if m, err = e.round(m); err != nil {
			return m, err
		}
	}
	for d := range e.names {
		if p := e.process(m.at[d]); !p.node.Synced() {
			return m, fmt.Errorf("sim: scope %s: %s is not ready after %d ticks", e.scope.Name, e.names[d], warmTicks)
		}
	}
	m.net = nil
	return m, nil
}

// warmTicks is how long the daemons get to know each other.
const warmTicks = 4

// round lets a tick pass in which all that is sent arrives.
func (e *explorer) round(m moment) (moment, error) {
	m, err := e.apply(m, action{kind: inTick})
	for err == nil && len(m.net) > 0 {
		f := m.net[0].frame
		if m, err = e.apply(m, action{inFrame, f}); err == nil {
			m.net = slices.DeleteFunc(slices.Clone(m.net), func(x flying) bool { return x.frame == f })
		}
	}
	return m, err
}

// visit explores all that follows a moment.
func (e *explorer) visit(m moment, depth int) error {
	if _, ok := e.seen[m.at]; ok {
		return nil
	}
	if e.out.States >= maxScopeStates {
		return fmt.Errorf("sim: scope %s: more than %d states, want less depth", e.scope.Name, maxScopeStates)
	}
	e.seen[m.at] = struct{}{}
	e.out.States++
	if err := e.check(&m); err != nil {
		return err
	}
	if depth <= e.scope.Heal {
		if err := e.heal(&m); err != nil {
			return err
		}
	}
	if depth == e.scope.Depth {
		return nil
	}
	for _, a := range e.actions(&m) {
		e.path = append(e.path, a)
		next, err := e.apply(m, a)
		if err == nil {
			err = e.visit(next, depth+1)
		}
		if err != nil {
			return err
		}
		e.path = e.path[:len(e.path)-1]
	}
	return nil
}

// actions lists what can happen next.
func (e *explorer) actions(m *moment) []action {
	out := make([]action, 0, 2*len(e.names)+len(m.net)+1)
	is, restarts := e.castNow(m), 0
	for d := range e.names {
		out = append(out, action{inAsk, int32(d)})
		if e.histories[m.at[d]].cast != is {
			out = append(out, action{inCast, int32(d)})
		}
		restarts += int(is[d])
	}
	for _, f := range m.net {
		out = append(out, action{inFrame, f.frame})
	}
	out = append(out, action{kind: inTick})
	if restarts < e.scope.Restarts {
		for d := range e.names {
			out = append(out, action{inStart, int32(d)})
		}
	}
	return out
}

// castNow is which processes are live.
func (e *explorer) castNow(m *moment) cast {
	var c cast
	for d := range e.names {
		c[d] = e.histories[m.at[d]].cast[d]
	}
	return c
}

// apply takes a step.
func (e *explorer) apply(m moment, a action) (moment, error) {
	feed := func(d int, in input) error {
		to, err := e.after(m.at[d], d, in)
		if err == nil && to != m.at[d] {
			m.at[d] = to
			m.net = e.sentBy(m.net, to)
		}
		return err
	}
	in := input{kind: a.kind, tick: m.tick}
	switch a.kind {
	case inTick:
		m.tick++
		in.tick = m.tick
		for d := range e.names {
			if err := feed(d, in); err != nil {
				return m, err
			}
		}
		return m, nil
	case inFrame:
		was := m.at
		in.arg = a.arg
		if err := feed(e.frames[a.arg].to, in); err != nil || m.at == was {
			return m, err
		}
		m.net = slices.Clone(m.net)
		i := slices.IndexFunc(m.net, func(f flying) bool { return f.frame == a.arg })
		if m.net[i].left--; m.net[i].left == 0 {
			m.net = slices.Delete(m.net, i, i+1)
		}
		return m, nil
	case inStart:
		in.cast = e.castNow(&m)
		in.cast[a.arg]++
	case inCast:
		in.cast = e.castNow(&m)
	}
	return m, feed(int(a.arg), in)
}

// sentBy adds the latest messages of a daemon to the network.
func (e *explorer) sentBy(net []flying, h int32) []flying {
	sent := e.histories[h].sent
	if len(sent) == 0 {
		return net
	}
	net = slices.Clip(net)
	for _, f := range sent {
		net = append(net, flying{f, 2})
	}
	return net
}

// violated ends the exploration with a violation.
func (e *explorer) violated(format string, args ...any) error {
	e.out.Violation = fmt.Sprintf(format, args...)
	for _, a := range e.path {
		e.out.Trace = append(e.out.Trace, e.describe(a))
	}
	return errViolated
}

func (e *explorer) describe(a action) string {
	switch a.kind {
	case inAsk:
		return "ask " + e.names[a.arg]
	case inTick:
		return "tick"
	case inStart:
		return "restart " + e.names[a.arg]
	case inCast:
		return e.names[a.arg] + " gets the list of peers"
	}
	f := &e.frames[a.arg]
	text := fmt.Sprintf("%s receives a frame of %s (%d)", e.names[f.to], e.names[f.from], a.arg)
	if msgs, err := f.decode(); err == nil {
		m := &msgs[0]
		text += fmt.Sprintf(": versions %d to %d, ack %d, echo %d", m.Lo, m.Hi, m.Ack, m.Echo)
		for _, c := range m.Cells {
			text += fmt.Sprintf(", %v %s: %d", c.Kind, e.owner(c.Incarnation), c.Value.P)
		}
	}
	return text
}
