#!/usr/bin/env bash
# Creates one item with curl, and retries the request with the same key until there is a response that
# a retry would not change. Prints it and exits with 0 if the item was created; otherwise it goes to
# stderr, and the exit code is 1.
#   ./client.sh http://127.0.0.1:7410/api/v1/items A-1 "A lamp"
set -euo pipefail
url=$1 sku=$2 title=$3
key=$(python3 -c 'import uuid; print(uuid.uuid4())') # one per item, the same for every attempt
item=$(python3 -c 'import json, sys; print(json.dumps({"sku": sys.argv[1], "title": sys.argv[2]}))' "$sku" "$title")
body=$(mktemp)
trap 'rm -f "$body"' EXIT

for pause in 0.2 0.4 0.8 1.6 3.2 0; do
    : >"$body" # not the response of an earlier attempt
    status=$(curl --silent --show-error --max-time 2 --output "$body" --write-out '%{http_code}' \
        --header 'Content-Type: application/json' --header 'X-Api-Key: demo' --header "Idempotency-Key: $key" \
        --data-raw "$item" "$url") || status="no answer" # a time-out, a reset, nobody there, half an answer
    again=no
    case $status in
        2??) cat "$body" && echo && exit 0 ;;
        "no answer" | 429 | 5??) again=yes ;;
        409) if grep -q IDEMPOTENCY_KEY_PROCESSING "$body"; then again=yes; fi ;;
    esac
    printf '%s: %s\n' "$status" "$(cat "$body")" >&2
    if [[ $again == no ]]; then exit 1; fi
    sleep "$pause"
done
echo "try again later with the same key: $key" >&2
exit 1
