-- Refuses what Envoy, rld and your service could read differently.

-- Letters and digits that are escaped in the path. Envoy decodes them when it
-- normalizes the path; if it did not, they would avoid a route and its limit.
local escaped = {"%%[46][1-9A-Fa-f]", "%%[57][0-9Aa]", "%%3%d"}

function envoy_on_request(handle)
  local headers = handle:headers()
  local path = headers:get(":path"):match("^[^?]*")
  for _, pattern in ipairs(escaped) do
    if path:find(pattern) then
      handle:respond({[":status"] = "400"}, "the path has escaped letters\n")
      return
    end
  end
  -- Envoy counts the first of several keys, and rld takes no text of more than
  -- 4096 bytes and none that is not UTF-8. An empty key is none.
  local key = headers:get("x-api-key")
  if key == nil then
    return
  end
  if headers:getNumValues("x-api-key") ~= 1 or #key > 4096 or key:find("[^\32-\126]") then
    handle:respond({[":status"] = "400"}, "X-Api-Key is faulty\n")
  elseif key == "" then
    headers:remove("x-api-key")
  end
end
