-- The action rld asks rld about a request by a mapping. It sets txn.rld to
-- "allowed", or to "failed" if rld did not decide, and answers what rld denies.
-- If the action itself fails, txn.rld is not set.

-- The headers of the client that the mapping reads. rld gets no others.
local read = { "x-api-key" }

-- Requests with more bytes in these headers and the URI are denied, so that the
-- question fits into a buffer of HAProxy.
local most = 8192

-- The socket of the section rld in haproxy.cfg.
local socket = "abns@rld"

-- first returns the first line of a header, or nil.
local function first(headers, name)
	return headers[name] and headers[name][0]
end

-- deny ends the request with an answer.
local function deny(txn, status, headers, body)
	local reply = txn:reply({ status = status })
	for _, name in ipairs({ "content-type", "location", "ratelimit", "ratelimit-policy", "retry-after", "www-authenticate" }) do
		local value = first(headers, name)
		if value then
			reply:add_header(name, value)
		end
	end
	reply:set_body(body or "")
	txn:done(reply)
end

core.register_action("rld", { "http-req" }, function(txn, mapping)
	local got = txn.http:req_get_headers()
	local uri = txn.f:pathq() or ""
	local ask = {
		["x-forwarded-method"] = { txn.f:method() },
		["x-forwarded-uri"] = { uri },
		["x-forwarded-for"] = { txn.f:src() },
		["x-forwarded-host"] = { first(got, "host") },
	}
	local size = #uri + #(first(got, "host") or "")
	for _, name in ipairs(read) do
		local lines = {}
		for i = 0, got[name] and #got[name] or -1 do
			lines[i + 1] = got[name][i]
			size = size + #got[name][i]
		end
		if #lines > 0 then
			ask[name] = lines
		end
	end
	if size > most then
		return deny(txn, 431, {})
	end

	local answer = core.httpclient():get({
		url = "http://rld/v1/forward-auth/" .. mapping,
		headers = ask,
		dst = socket,
		timeout = 1000,
	})
	local status = answer and answer.status or 0
	if status == 200 then
		local limit = first(answer.headers, "ratelimit")
		if limit then
			txn:set_var("txn.rld_limit", limit)
		end
		txn:set_var("txn.rld", "allowed")
	elseif status >= 300 and status < 500 then
		return deny(txn, status, answer.headers, answer.body)
	else
		txn:set_var("txn.rld", "failed")
	end
end, 1)
