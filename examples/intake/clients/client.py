#!/usr/bin/env python3
"""Creates one item, and retries the request with the same key until there is a response.

    python3 client.py http://127.0.0.1:7410/api/v1/items A-1 "A lamp"
"""
import http.client
import json
import sys
import time
import urllib.error
import urllib.request
import uuid

TRIES = 6


def error_code(body: bytes) -> str | None:
    """Returns the service's error code, if any; a proxy in between may respond without JSON."""
    try:
        return json.loads(body).get("error_code")
    except (ValueError, AttributeError):
        return None


def read(refused: urllib.error.HTTPError) -> bytes:
    """Returns the body of an error, or as much of it as arrived; its status is enough without it."""
    try:
        return refused.read()
    except http.client.IncompleteRead as broken:
        return broken.partial
    except OSError:
        return b""


def take_in(url: str, sku: str, title: str) -> dict:
    key = str(uuid.uuid4())  # one per item, the same for every attempt
    body = json.dumps({"sku": sku, "title": title}).encode()
    for attempt in range(TRIES):
        request = urllib.request.Request(url, data=body, method="POST")
        request.add_header("Content-Type", "application/json")
        request.add_header("X-Api-Key", "demo")
        request.add_header("Idempotency-Key", key)
        try:
            with urllib.request.urlopen(request, timeout=2) as answer:
                if answer.headers.get("Idempotent-Replayed") == "true":
                    print("answered before: nothing was done twice", file=sys.stderr)
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            told = read(refused)
            code = error_code(told)
            if refused.code < 500 and refused.code != 429 and code != "IDEMPOTENCY_KEY_PROCESSING":
                # A retry would not change it.
                raise SystemExit(f"refused: {refused.code}\n{told.decode(errors='replace')}") from None
            print(f"try {attempt + 1}: {refused.code} {code}", file=sys.stderr)
        except (OSError, http.client.HTTPException) as broken:  # a time-out, a reset, nobody there, half an answer
            print(f"try {attempt + 1}: {broken}", file=sys.stderr)
        time.sleep(min(2**attempt * 0.2, 5))
    raise SystemExit("no answer; try again later with the same key: " + key)


if __name__ == "__main__":
    print(json.dumps(take_in(*sys.argv[1:4])))
