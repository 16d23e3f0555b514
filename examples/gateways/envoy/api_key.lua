-- Refuses API keys that Envoy, rld and your service could read differently.
-- Envoy counts the first of several headers, and rld takes no text of more than
-- 4096 bytes and none that is not UTF-8. An empty key is none.
function envoy_on_request(handle)
  local headers = handle:headers()
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
