package telemetry

// Kind is the type of a metric family.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Family describes the series of one metric name.
type Family struct {
	Name   string
	Kind   Kind
	Labels []string
	// Help is the text of the HELP line.
	Help string
}

// daemonFamilies are updated as things happen.
var daemonFamilies = []Family{
	{"rld_build_info", Gauge, []string{"version", "goversion"}, "1, with the versions of rld and of Go as labels."},
	{"rld_config_reloads_total", Counter, []string{"result"}, "Loads of the limits, including the first, by result."},
	{"rld_config_last_reload_success_timestamp_seconds", Gauge, nil, "Unix time of the last successful load, in seconds."},
	{"rld_config_stale", Gauge, nil, "1 while the limits on disk, or of the xDS server, are invalid and the previous ones are in force, else 0."},
	{"rld_panics_total", Counter, nil, "Calls that ended in a recovered panic. Each is a bug of rld; the log has the stack."},
	{"rld_decision_duration_seconds", Histogram, []string{"edge"}, "Time from the decoded request to the decision; once a frame on streams."},
	{"rld_malformed_total", Counter, []string{"edge"}, "Malformed requests that were rejected, by edge."},
	{"rld_gateway_faulty_requests_total", Counter, []string{"gateway", "reason"}, "Requests of gateways that were denied without a decision, by mapping and reason."},
	{"rld_refused_streams_total", Counter, nil, "Streams of callers that were refused, since their connection or the daemon had too many."},
}

// connectionFamilies are read from the listeners at each scrape.
var connectionFamilies = []Family{
	{"rld_connections", Gauge, []string{"listener", "state"}, "Connections by listener and state: established, or unfinished before the end of their handshake."},
	{"rld_max_connections", Gauge, []string{"listener", "state"}, "Greatest number of these connections."},
	{"rld_closed_connections_total", Counter, []string{"listener", "reason"}, "Connections that a bound closed, by listener and reason."},
}

// engineFamilies are read from the engine at each scrape.
var engineFamilies = []Family{
	{"rld_decisions_total", Counter, []string{"domain", "rule", "outcome"}, "Decided descriptors: allowed, denied, or shadowed (above the limit in shadow mode). " +
		"In the global shadow mode a call counts as if that mode were off. Rule override with an empty domain counts limits of requests."},
	{"rld_hits_total", Counter, []string{"domain", "rule", "outcome"}, "Requested hits: within the limit, near it (above limits.near_limit_ratio), or over it."},
	{"rld_unmatched_total", Counter, []string{"domain"}, "Descriptors without a rule, in domains with rules (known) or without any (unknown)."},
	{"rld_degraded_total", Counter, []string{"reason"}, "Descriptors with a degraded decision, by reason."},
	{"rld_live_keys", Gauge, nil, "Tracked keys."},
	{"rld_max_keys", Gauge, nil, "Greatest number of tracked keys. Further keys share overflow counters."},
	{"rld_rule_keys", Gauge, []string{"domain", "rule"}, "Tracked keys of each rule."},
	{"rld_keys_full_total", Counter, []string{"domain", "rule"}, "Descriptors of each rule without room for one more key of it (keys_full)."},
	{"rld_overflow_keys", Gauge, nil, "Overflow counters in use. Above 0, new keys may be denied falsely."},
	{"rld_config_rules", Gauge, nil, "Rules in force, including those without a limit."},
	{"rld_clock_offset_seconds", Gauge, nil, "Lead of the clock of windows over the wall clock, in seconds."},
	{"rld_clock_steps_total", Counter, []string{"direction"}, "Steps of the wall clock, for example when an operator sets it, by direction."},
}

// callerFamilies are read from the listeners for callers at each scrape.
var callerFamilies = []Family{
	{"rld_token_calls_total", Counter, []string{"token"}, "Calls and checks of streams that a token was admitted with, by its name."},
	{"rld_refused_calls_total", Counter, []string{"reason", "token"}, "Calls and checks of streams that were refused before any limit was asked: " +
		"no_token and unknown_token without a name, domain, verb and rate by the name of the token."},
	{"rld_refused_admin_requests_total", Counter, []string{"reason"}, "Requests that the admin listener refused: browser (of a web page), proxy, " +
		"host (a header Host that is not this machine), no_credentials, unknown_token, role (too small a role)."},
	{"rld_credentials_stale", Gauge, []string{"file"}, "1 while a tokens file (tokens, admin_tokens), the membership keys (membership_keys) or the certificate of a listener (grpc, http, admin) " +
		"is invalid on disk and the previous one is in force, else 0."},
	{"rld_listener_certificate_expiry_timestamp_seconds", Gauge, []string{"listener"}, "Unix time at which the certificate of a listener expires, in seconds."},
	{"rld_tls_handshake_failures_total", Counter, []string{"listener", "reason"}, "Failed TLS handshakes of callers, by listener and reason: " +
		"plain_text (a caller without TLS), client_certificate, other."},
}

// clusterFamilies are read from the cluster at each scrape.
var clusterFamilies = []Family{
	{"rld_members", Gauge, []string{"region", "ready"}, "Live daemons, including this one, by region and readiness."},
	{"rld_streams", Gauge, []string{"direction", "state"}, "Streams to peers, one a peer, by state (dialed), and streams from peers (accepted)."},
	{"rld_silent_peers", Gauge, []string{"region"}, "Peers without any message so far, or without one for longer than usual, by region."},
	{"rld_frames_total", Counter, []string{"direction"}, "Frames of streams, by direction."},
	{"rld_frame_bytes_total", Counter, []string{"direction"}, "Size of frames on the wire, after compression, by direction, in bytes."},
	{"rld_frames_dropped_total", Counter, nil, "Frames that were not sent, for lack of a stream or of room in its queue. Later frames repeat their content."},
	{"rld_staleness_seconds", Gauge, []string{"region"}, "Age of the oldest view of a peer of the region, in seconds: " +
		"at most the time that its counts take to arrive, unless it is silent. Peers without a view are in rld_silent_peers."},
	{"rld_unsent_staleness_seconds", Gauge, []string{"region"}, "As rld_staleness_seconds, including counts that peers had not sent yet, in seconds."},
	{"rld_peer_clock_offset_seconds", Gauge, []string{"region"}, "Greatest distance, in either direction, to the clock of a peer of the region, in seconds."},
	{"rld_refused_frames_total", Counter, []string{"reason"}, "Frames of peers that this daemon rejected, by reason."},
	{"rld_refused_handshakes_total", Counter, []string{"reason"}, "Handshakes of streams that this daemon refused, by reason."},
	{"rld_refused_claims_total", Counter, []string{"kind"}, "Claims of peers about regions and addresses that were not believed, by kind."},
	{"rld_certificate_expiry_timestamp_seconds", Gauge, []string{"of"}, "When the certificate of this daemon (own), or the first one of a connected peer (peers), " +
		"stops being valid, in Unix seconds. Plain streams have none."},
	{"rld_two_cluster_secrets", Gauge, nil, "1 while two cluster secrets are in force, of which the next one is to take the place of the current one, else 0."},
	{"rld_refused_members_total", Counter, []string{"reason"}, "Daemons and packets that the membership of the region refused, by reason."},
	{"rld_rejected_peers_total", Counter, []string{"reason"}, "Streams of this daemon that peers refused or dropped, by reason."},
	{"rld_rejoin_attempts_total", Counter, []string{"result"}, "Attempts to join the membership through the seeds, by result: error if no seed answered."},
	{"rld_merged_cells_total", Counter, nil, "Merged cells of messages of peers, including unchanged ones."},
	{"rld_cells", Gauge, nil, "Replicated cells of windows that are not over."},
	{"rld_replica_events_total", Counter, []string{"kind"}, "Events of replication, by kind."},
	{"rld_rules_info", Gauge, []string{"hash"}, "1, with the hash of the rules in force as a label. Daemons with the same rules have the same hash."},
	{"rld_rules_hash_agree", Gauge, nil, "1 while all known peers have the rules of this daemon, else 0."},
	{"rld_rules_diverged_peers", Gauge, nil, "Peers with other rules than this daemon."},
}

// budgetFamilies are read from the overage monitor at each scrape.
var budgetFamilies = []Family{
	{"rld_overage_ratio", Gauge, []string{"domain", "rule"}, "Overage of the busiest key of the rule in the current window, as a fraction of the limit."},
	{"rld_overage_bound_ratio", Gauge, []string{"domain", "rule"}, "Worst-case overage of the rule, as a fraction of the limit."},
	{"rld_overage_budget_ratio", Gauge, []string{"domain", "rule"}, "The overage_budget of a rule with rights, as a fraction of the limit; 0 for consistency partition."},
	{"rld_rights_held_hits", Gauge, []string{"domain", "rule"}, "Allotment of this daemon for a key of the rule in the current window, in hits."},
	{"rld_rights_usable", Gauge, nil, "1 while this daemon may use rights in windows that start now, else 0. Daemons without rights do not export it."},
	{"rld_weight_ratio", Gauge, []string{"domain", "rule", "region"}, "Share of the region in the rights of the rule, as a fraction."},
	{"rld_gate_denials_total", Counter, []string{"gate"}, "Denied descriptors, by gate: estimate, rights, or both; owner, or failure if the owner was unreachable."},
	{"rld_rights_given_hits_total", Counter, nil, "Rights that this daemon transferred to others, in hits."},
	{"rld_rights_received_hits_total", Counter, nil, "Rights that others transferred to this daemon, in hits."},
	{"rld_epochs", Gauge, []string{"table", "state"}, "Epochs of shares, by table (regions or daemons) and state (settled or pending)."},
}

// strictFamilies are read from the strict keys at each scrape.
var strictFamilies = []Family{
	{"rld_strict_decisions_total", Counter, []string{"how"}, "Decided descriptors of strict keys: at once (local), or after a wait for the owner (waited)."},
	{"rld_strict_lease_requests_total", Counter, nil, "Lease requests that this daemon sent."},
	{"rld_strict_refusals_total", Counter, []string{"reason"}, "Lease requests that this owner could not answer, by reason."},
	{"rld_strict_grants_total", Counter, []string{"answer"}, "Lease requests that this owner answered: granted or denied."},
	{"rld_strict_rights_hits_total", Counter, []string{"direction"}, "Leased hits: granted by this owner, and returned by this lessee, in hits."},
	{"rld_strict_denials_cached_total", Counter, nil, "Descriptors denied by a recent denial of the owner, without a request."},
	{"rld_strict_replays_total", Counter, nil, "Repeated lease requests, which the owner counts once."},
	{"rld_strict_rejected_items_total", Counter, nil, "Rejected items of messages: wrong key, window or sender."},
	{"rld_strict_pending_calls", Gauge, nil, "Calls that wait for owners."},
	{"rld_strict_unqueued_calls_total", Counter, nil, "Calls that on_failure decided because too many calls were pending."},
	{"rld_strict_frames_total", Counter, nil, "Frames about strict keys that were handed to streams."},
	{"rld_strict_dropped_items_total", Counter, nil, "Items about strict keys that no stream accepted. Later frames repeat them."},
	{"rld_strict_watermark_accepts_total", Counter, []string{"state"}, "Accept requests of this owner: sent to acceptors, and accepted by a majority."},
	{"rld_strict_ballots_lost_total", Counter, nil, "Ballots of this owner that another owner outvoted or took over."},
	{"rld_strict_watermark_replies_total", Counter, []string{"answer"}, "Accept requests to the acceptor of this daemon: accepted, or the reason for the refusal."},
	{"rld_strict_layout", Gauge, nil, "Number of the layout in force."},
	{"rld_strict_voting", Gauge, nil, "1 while this strict voter votes, else 0. Only voters export it."},
	{"rld_strict_keys", Gauge, []string{"store"}, "Strict keys: tracked by the shards, and stored by the acceptor."},
	{"rld_strict_journal_bytes", Gauge, nil, "Size of the journal of the acceptor, in bytes."},
	{"rld_strict_journal_writes_total", Counter, nil, "Writes of the journal. Each flushes the disk once."},
	{"rld_strict_journal_entries_total", Counter, nil, "Entries written to the journal."},
	{"rld_strict_journal_write_seconds_total", Counter, nil, "Time spent in writes of the journal, including flushes, in seconds."},
	{"rld_strict_journal_failures_total", Counter, nil, "Failed writes of the journal."},
	{"rld_strict_journal_rewrites_total", Counter, nil, "Rewrites of the journal, which drop expired entries."},
	{"rld_circuit_breaker_state", Gauge, []string{"region", "owner"}, "State of the circuit breaker to an owner: 0 closed, 1 half open, 2 open."},
	{"rld_circuit_breaker_transitions_total", Counter, []string{"state"}, "Transitions of circuit breakers, by the state entered."},
}

// controlFamilies are read from the control log at each scrape.
var controlFamilies = []Family{
	{"rld_control_begun", Gauge, nil, "1 once the cluster has begun, else 0."},
	{"rld_control_version", Gauge, nil, "Index of the latest entry in the record of this daemon. The others have the same, or catch up."},
	{"rld_control_format", Gauge, nil, "Format of the record of this daemon, 0 without one. The others have the same, or catch up."},
	{"rld_control_recovery", Gauge, nil, "Number of the recovery that the record belongs to, 0 for the first log."},
	{"rld_control_leader_known", Gauge, nil, "1 while this daemon knows a leader of the control log, else 0."},
	{"rld_control_voter", Gauge, nil, "1 while this daemon votes in the control log, else 0."},
	{"rld_control_leads", Gauge, nil, "1 while this daemon leads the control log, else 0."},
	{"rld_control_open", Gauge, nil, "1 while this daemon can read and store the control log, else 0."},
	{"rld_control_events_total", Counter, []string{"kind"}, "Events of the control log, by kind."},
	{"rld_limits_version", Gauge, nil, "Index of the entry of the rules that rld limits applied last, 0 for none."},
	{"rld_limits_in_use_version", Gauge, nil, "Index of the record whose limits decide the calls of this daemon. It follows rld_control_version."},
	{"rld_limits_pending", Gauge, nil, "1 while a change of the limits waits for the acknowledgement of a region, else 0."},
	{"rld_limits_diverged", Gauge, nil, "Domains whose rules in the files of this daemon differ from the control log, and do not count."},
	{"rld_limits_unusable", Gauge, nil, "1 while this daemon cannot use the limits of the control log, and keeps the former ones, else 0."},
	{"rld_limits_overrides", Gauge, nil, "Overrides of rules and keys, with those that begin later or end with a window."},
}

// waitFamily is observed as calls end their wait.
var waitFamily = Family{"rld_strict_wait_seconds", Histogram, nil, "Time that calls waited for the owners of their keys, in seconds."}
