package upstream

// table has each variable of src/settings/settings.go of envoyproxy/ratelimit
// (3fb702589d36), those of request headers, which are of a later version, and
// those that deployments of it set beside them.
var table = []Variable{
	// Listeners.
	{Name: "HOST", Kind: Derived, Setting: "http.addr"},
	{Name: "PORT", Kind: Derived, Setting: "http.addr"},
	{Name: "GRPC_HOST", Kind: Derived, Setting: "grpc.addr"},
	{Name: "GRPC_PORT", Kind: Derived, Setting: "grpc.addr"},
	{Name: "GRPC_UDS", Kind: Same, Setting: "grpc.uds", Text: "the socket is served beside TCP, not in place of it"},
	{Name: "DEBUG_HOST", Kind: Derived, Setting: "admin.addr", Text: "off loopback, the admin listener needs TLS or admin.insecure"},
	{Name: "DEBUG_PORT", Kind: Derived, Setting: "admin.addr", Text: "the admin listener is on loopback by default"},
	{Name: "GRPC_MAX_CONNECTION_AGE", Kind: Same, Setting: "grpc.max_connection_age"},
	{Name: "GRPC_MAX_CONNECTION_AGE_GRACE", Kind: Same, Setting: "grpc.max_connection_age_grace"},
	{Name: "GRPC_SERVER_USE_TLS", Kind: Selector, Text: "selects the TLS of the gRPC listener"},
	{Name: "GRPC_SERVER_TLS_CERT", Kind: Same, Group: ServerTLS, Setting: "grpc.tls.cert_file"},
	{Name: "GRPC_SERVER_TLS_KEY", Kind: Same, Group: ServerTLS, Setting: "grpc.tls.key_file"},
	{Name: "GRPC_CLIENT_TLS_CACERT", Kind: Same, Group: ServerTLS, Setting: "grpc.tls.client_ca_file"},
	{Name: "GRPC_CLIENT_TLS_SAN", Kind: Same, Group: ServerTLS, Setting: "grpc.tls.client_san"},
	{
		Name: "GRPC_SERVER_TLS_CA_CERT", Kind: Unneeded, Group: ServerTLS,
		Text: "Envoy Gateway sets it, and neither program reads it; GRPC_CLIENT_TLS_CACERT would verify callers",
	},

	// Logs.
	{Name: "LOG_LEVEL", Kind: Derived, Setting: "log.level"},
	{Name: "LOG_FORMAT", Kind: Same, Setting: "log.format"},

	// Answers.
	{Name: "SHADOW_MODE", Kind: Same, Setting: "shadow"},
	{Name: "QUOTA_MODE", Kind: Same, Setting: "quota_all"},
	{Name: "LIMIT_RESPONSE_HEADERS_ENABLED", Kind: Same, Setting: "rls.headers"},
	{Name: "LIMIT_LIMIT_HEADER", Kind: Same, Setting: "rls.limit_header"},
	{Name: "LIMIT_REMAINING_HEADER", Kind: Same, Setting: "rls.remaining_header"},
	{Name: "LIMIT_RESET_HEADER", Kind: Same, Setting: "rls.reset_header"},
	{
		Name: "LIMIT_REQUEST_HEADERS_ENABLED", Kind: Replaced,
		Text: "rld adds headers to responses alone: a service behind Envoy that reads them of requests gets none",
	},
	{Name: "LIMIT_REQUEST_LIMIT_HEADER", Kind: Unneeded, Text: "rld adds no headers to requests"},
	{Name: "LIMIT_REQUEST_REMAINING_HEADER", Kind: Unneeded, Text: "rld adds no headers to requests"},
	{Name: "LIMIT_REQUEST_RESET_HEADER", Kind: Unneeded, Text: "rld adds no headers to requests"},
	{Name: "RESPONSE_DYNAMIC_METADATA", Kind: Same, Setting: "rls.dynamic_metadata"},
	{Name: "ENABLE_NEGATIVE_HITS", Kind: Same, Setting: "rls.negative_hits", Text: "a daemon gives back no more hits than it counted itself"},
	{
		Name: "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", Kind: Derived, Setting: "limits.charge_denied",
		Text: "only true has an effect: rld does not charge denied hits by default, and the reference does",
	},

	// Limits in files.
	{Name: "CONFIG_TYPE", Kind: Selector, Setting: "limits.xds.server", Text: "selects the source of the limits: files, or an xDS server"},
	{Name: "RUNTIME_ROOT", Kind: Derived, Group: Files, Setting: "limits.path"},
	{Name: "RUNTIME_SUBDIRECTORY", Kind: Derived, Group: Files, Setting: "limits.path"},
	{Name: "RUNTIME_APPDIRECTORY", Kind: Derived, Group: Files, Setting: "limits.path"},
	{Name: "RUNTIME_IGNOREDOTFILES", Kind: Derived, Group: Files, Setting: "limits.names"},
	{Name: "RUNTIME_WATCH_ROOT", Kind: Unneeded, Group: Files, Text: "rld compares the contents of the files, which covers both values"},
	{Name: "MERGE_DOMAIN_CONFIG", Kind: Same, Setting: "limits.merge_domains"},
	{Name: "NEAR_LIMIT_RATIO", Kind: Same, Setting: "limits.near_limit_ratio"},

	// Limits of an xDS server.
	{Name: "CONFIG_GRPC_XDS_SERVER_URL", Kind: Derived, Group: XDS, Setting: "limits.xds.server"},
	{Name: "CONFIG_GRPC_XDS_NODE_ID", Kind: Same, Group: XDS, Setting: "limits.xds.node_id"},
	{Name: "CONFIG_GRPC_XDS_NODE_METADATA", Kind: Same, Group: XDS, Setting: "limits.xds.node_metadata"},
	{Name: "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", Kind: Same, Group: XDS, Setting: "limits.xds.backoff_min"},
	{Name: "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", Kind: Same, Group: XDS, Setting: "limits.xds.backoff_min"},
	{Name: "XDS_CLIENT_BACKOFF_MAX_INTERVAL", Kind: Same, Group: XDS, Setting: "limits.xds.backoff_max"},
	{Name: "XDS_CLIENT_BACKOFF_JITTER", Kind: Unneeded, Group: XDS, Text: "attempts to reach the server always have jitter"},
	{Name: "XDS_CLIENT_BACKOFF_RANDOM_FACTOR", Kind: Unneeded, Group: XDS, Text: "attempts to reach the server always have jitter"},
	{Name: "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", Kind: Unneeded, Group: XDS, Text: "a response has at most 16 MiB"},
	{Name: "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", Kind: Derived, Group: XDS, Text: "headers beside those of limits.xds.headers_file"},
	{Name: "FORCE_START_WITHOUT_INITIAL_CONFIG", Kind: Same, Group: XDS, Setting: "limits.xds.start_without_limits"},
	{Name: "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", Kind: Derived, Group: XDS, Setting: "limits.xds.start_without_limits"},
	{Name: "CONFIG_GRPC_XDS_SERVER_USE_TLS", Kind: Same, Group: XDS, Setting: "limits.xds.tls.enabled"},
	{Name: "CONFIG_GRPC_XDS_CLIENT_TLS_CERT", Kind: Same, Group: XDSTLS, Setting: "limits.xds.tls.cert_file"},
	{Name: "CONFIG_GRPC_XDS_CLIENT_TLS_KEY", Kind: Same, Group: XDSTLS, Setting: "limits.xds.tls.key_file"},
	{Name: "CONFIG_GRPC_XDS_SERVER_TLS_CACERT", Kind: Same, Group: XDSTLS, Setting: "limits.xds.tls.ca_file"},
	{Name: "CONFIG_GRPC_XDS_SERVER_TLS_SAN", Kind: Same, Group: XDSTLS, Setting: "limits.xds.tls.server_name"},

	// Metrics and traces.
	{Name: "USE_PROMETHEUS", Kind: Selector, Setting: "probe.addr", Text: "serves metrics at PROMETHEUS_ADDR, also under the names of the reference"},
	{Name: "PROMETHEUS_ADDR", Kind: Derived, Group: Prometheus, Setting: "probe.addr"},
	{Name: "PROMETHEUS_PATH", Kind: Derived, Group: Prometheus, Setting: "probe.metrics_path"},
	{
		Name: "PROMETHEUS_MAPPER_YAML", Kind: Replaced, Group: Prometheus,
		Text: "metrics have the names of the default mapping of the reference: rename them where they are read",
	},
	{Name: "USE_STATSD", Kind: Replaced, Group: Stats, Text: "metrics are not sent: let Prometheus read /metrics of the admin listener, or set USE_PROMETHEUS=true"},
	{Name: "USE_DOG_STATSD", Kind: Replaced, Group: Stats, Text: "metrics are not sent: let Prometheus, or the agent of Datadog, read /metrics"},
	{Name: "USE_DOG_STATSD_MOGRIFIERS", Kind: Replaced, Group: Stats, Text: "rename metrics where they are read"},
	{Name: "STATSD_HOST", Kind: Unneeded, Group: Stats, Text: "rld sends no metrics"},
	{Name: "STATSD_PORT", Kind: Unneeded, Group: Stats, Text: "rld sends no metrics"},
	{Name: "STATS_FLUSH_INTERVAL", Kind: Unneeded, Group: Stats, Text: "rld sends no metrics"},
	{Name: "EXTRA_TAGS", Kind: Replaced, Group: Stats, Text: "add labels where metrics are read"},
	{Name: "DISABLE_STATS", Kind: Unneeded, Group: Stats, Text: "metrics cost nothing until they are read"},
	{Name: "TRACING_ENABLED", Kind: Replaced, Group: Tracing, Text: "rld has no tracing; rld explain shows the causes of a decision"},
	{Name: "TRACING_SERVICE_NAME", Kind: Unneeded, Group: Tracing, Text: "rld has no tracing"},
	{Name: "TRACING_SERVICE_NAMESPACE", Kind: Unneeded, Group: Tracing, Text: "rld has no tracing"},
	{Name: "TRACING_SERVICE_INSTANCE_ID", Kind: Unneeded, Group: Tracing, Text: "rld has no tracing"},
	{Name: "TRACING_EXPORTER_PROTOCOL", Kind: Unneeded, Group: Tracing, Text: "rld has no tracing"},
	{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Kind: Unneeded, Group: Tracing, Text: "rld has no tracing"},
	{Name: "TRACING_SAMPLING_RATE", Kind: Unneeded, Group: Tracing, Text: "rld has no tracing"},

	// The store.
	store("BACKEND_TYPE"), store("CACHE_KEY_PREFIX"), store("EXPIRATION_JITTER_MAX_SECONDS"),
	store("LOCAL_CACHE_SIZE_IN_BYTES"),
	store("REDIS_SOCKET_TYPE"), store("REDIS_TYPE"), store("REDIS_URL"), store("REDIS_POOL_SIZE"),
	store("REDIS_POOL_ON_EMPTY_BEHAVIOR"), store("REDIS_AUTH"), store("REDIS_SENTINEL_AUTH"), store("REDIS_TIMEOUT"),
	store("REDIS_TLS"), store("REDIS_TLS_CLIENT_CERT"), store("REDIS_TLS_CLIENT_KEY"), store("REDIS_TLS_CACERT"),
	store("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION"),
	store("REDIS_PIPELINE_WINDOW"), store("REDIS_PIPELINE_LIMIT"),
	store("REDIS_PERSECOND"), store("REDIS_PERSECOND_SOCKET_TYPE"), store("REDIS_PERSECOND_TYPE"),
	store("REDIS_PERSECOND_URL"), store("REDIS_PERSECOND_POOL_SIZE"), store("REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR"),
	store("REDIS_PERSECOND_AUTH"), store("REDIS_PERSECOND_SENTINEL_AUTH"), store("REDIS_PERSECOND_TIMEOUT"),
	store("REDIS_PERSECOND_TLS"), store("REDIS_PERSECOND_PIPELINE_WINDOW"), store("REDIS_PERSECOND_PIPELINE_LIMIT"),
	store("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION"),
	store("MEMCACHE_HOST_PORT"), store("MEMCACHE_MAX_IDLE_CONNS"), store("MEMCACHE_SRV"), store("MEMCACHE_SRV_REFRESH"),
	store("MEMCACHE_TLS"), store("MEMCACHE_TLS_CLIENT_CERT"), store("MEMCACHE_TLS_CLIENT_KEY"), store("MEMCACHE_TLS_CACERT"),
	store("MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION"),
}

func store(name string) Variable {
	return Variable{Name: name, Kind: Unneeded, Group: Store, Text: "rld needs no store: counts are in the memory of the daemons"}
}
