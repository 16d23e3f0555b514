package telemetry

import "time"

// XDSStats is a snapshot of the limits of an xDS server.
type XDSStats struct {
	// Connected reports whether the server has answered on a stream that is
	// open.
	Connected bool
	// Attempts counts attempts to open a stream.
	Attempts uint64
	// Accepted and Refused count the responses with an ACK and with a NACK.
	Accepted, Refused uint64
	// LastAccepted is the time of the last ACK, zero for none.
	LastAccepted time.Time
}

// xdsFamilies are read from the client of an xDS server at each scrape.
var xdsFamilies = []Family{
	{"rld_xds_connected", Gauge, nil, "1 while the xDS server has answered on an open stream, else 0."},
	{"rld_xds_streams_total", Counter, nil, "Attempts to open a stream to the xDS server."},
	{"rld_xds_responses_total", Counter, []string{"result"}, "Responses of the xDS server: success (ACK) or error (NACK), where the former limits stay in force."},
	{"rld_xds_last_ack_timestamp_seconds", Gauge, nil, "Unix time of the last ACK, in seconds; 0 before the first."},
}

func newXDSCollector(read func() XDSStats) *collector {
	return newCollector(xdsFamilies, func(w *writer) {
		s := read()
		connected := 0
		if s.Connected {
			connected = 1
		}
		put(w, "xds_connected", connected)
		put(w, "xds_streams_total", s.Attempts)
		put(w, "xds_responses_total", s.Accepted, resultSuccess)
		put(w, "xds_responses_total", s.Refused, resultError)
		last := 0.0
		if !s.LastAccepted.IsZero() {
			last = float64(s.LastAccepted.UnixNano()) / 1e9
		}
		w.float("xds_last_ack_timestamp_seconds", last)
	})
}
