package swim

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/hashicorp/memberlist"
)

// create opens the transport and creates a list with this daemon alone. On an
// error it shuts the transport down.
func (s *Swim) create() error {
	inner := s.cfg.Transport
	var bind *net.TCPAddr
	if inner == nil {
		var err error
		if bind, err = net.ResolveTCPAddr("tcp", s.cfg.Bind); err != nil {
			return fmt.Errorf("swim: bind %q: %w", s.cfg.Bind, err)
		}
		if bind.IP == nil {
			bind.IP = net.IPv4zero
		}
		if bind.IP.Equal(net.IPv6unspecified) && s.cfg.Advertise == "" {
			return fmt.Errorf("swim: bind %s is every address: advertise must say which one others reach", bind)
		}
		t, err := listen(bind, s.logs)
		if err != nil {
			return err
		}
		bind.Port = t.GetAutoBindPort()
		inner = t
	}
	var encrypted *refusals
	if s.ring != nil {
		encrypted = s.refused
	}
	g := newGuard(inner, encrypted, &s.roster.mute)
	err := s.createOn(g, bind)
	if err != nil {
		s.logs.closed.Store(true)
		err = errors.Join(err, g.Shutdown())
	}
	return err
}

func (s *Swim) createOn(g *guard, bind *net.TCPAddr) error {
	mc := tuned(s.cfg, s.roster, g, s.ring, s.logs)
	if s.cfg.Advertise != "" {
		at, err := net.ResolveTCPAddr("tcp", s.cfg.Advertise)
		if err == nil && (at.IP == nil || at.IP.IsUnspecified() || at.Port == 0) {
			err = errors.New("must be the address and port of one host")
		}
		if err != nil {
			return fmt.Errorf("swim: advertise %q: %w", s.cfg.Advertise, err)
		}
		mc.AdvertiseAddr, mc.AdvertisePort = at.IP.String(), at.Port
	}
	ip, port, err := g.FinalAdvertiseAddr(mc.AdvertiseAddr, mc.AdvertisePort)
	if err != nil {
		return fmt.Errorf("swim: address to be reached at: %w; set advertise", err)
	}
	mc.BindPort, mc.AdvertisePort = port, port
	s.addr = joinAddr(ip, port)
	s.roster.setAt(s.addr)
	if bind != nil {
		s.addr = bind.String()
	}
	if s.list, err = memberlist.Create(mc); err != nil {
		return fmt.Errorf("swim: %w", err)
	}
	return nil
}

// mine reports whether a is an address of this daemon.
func (s *Swim) mine(a netip.AddrPort) bool {
	if a.String() == s.roster.ownAddress() || a.String() == s.addr {
		return true
	}
	bound, err := netip.ParseAddrPort(s.addr)
	if err != nil || s.cfg.Transport != nil || !bound.Addr().IsUnspecified() || bound.Port() != a.Port() {
		return false
	}
	local, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(local, func(l net.Addr) bool {
		n, ok := l.(*net.IPNet)
		return ok && n.IP.Equal(a.Addr().AsSlice())
	})
}

// listen opens UDP and TCP on one port of bind, an IP address and a port. Port
// 0 selects one that is free for both.
func listen(bind *net.TCPAddr, j *logAdapter) (*memberlist.NetTransport, error) {
	tries := 1
	if bind.Port == 0 {
		tries = 10 // the port that TCP got may be in use over UDP
	}
	var err error
	for range tries {
		var t *memberlist.NetTransport
		t, err = memberlist.NewNetTransport(&memberlist.NetTransportConfig{
			BindAddrs: []string{bind.IP.String()}, BindPort: bind.Port, Logger: j.logger(),
		})
		if err == nil {
			return t, nil
		}
	}
	return nil, fmt.Errorf("swim: listen on %s: %w", bind, err)
}
