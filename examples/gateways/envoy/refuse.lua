-- Refuses what Envoy, rld and your service could read differently.

-- In a path: letters, digits and slashes that are escaped, a backslash, // and
-- the ; of parameters, which some services ignore. They could avoid a route or
-- a match, and its limit.
local refused = {"%%[46][1-9A-Fa-f]", "%%[57][0-9Aa]", "%%3%d", "%%2[Ff]", "%%5[Cc]", "\\", "//", ";"}

function envoy_on_request(handle)
  local headers = handle:headers()
  local path = (headers:get(":path") or ""):match("^[^?]*")
  for _, pattern in ipairs(refused) do
    if path:find(pattern) then
      handle:respond({[":status"] = "400"}, "the path has escaped letters or slashes, a backslash, // or ;\n")
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
