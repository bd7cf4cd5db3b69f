#!/usr/bin/env bash
# Takes one item in with curl, and repeats the request with the same key until there is an answer.
#   ./client.sh http://127.0.0.1:7410/api/v1/items A-1 "A lamp"
set -euo pipefail
url=$1 sku=$2 title=$3
key=$(cat /proc/sys/kernel/random/uuid) # one for each item, kept for every try

# curl repeats by itself after a time-out, a refused or broken connection and 5xx. A 409 that says PROCESSING is worth
# another try too; any other answer is the answer.
for try in 1 2 3 4 5; do
    answer=$(curl --silent --show-error --max-time 2 --retry 5 --retry-all-errors --retry-connrefused \
        --header 'Content-Type: application/json' --header 'X-Api-Key: demo' --header "Idempotency-Key: $key" \
        --data "{\"sku\":\"$sku\",\"title\":\"$title\"}" "$url") || { echo "try $try: no answer" >&2; continue; }
    case $answer in
        *IDEMPOTENCY_KEY_PROCESSING*) sleep 1 ;;
        *) printf '%s\n' "$answer"; exit 0 ;;
    esac
done
echo "no answer; try again later with the same key: $key" >&2
exit 1
