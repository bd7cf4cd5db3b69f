"""Places orders with requests: client.py URL COUNT WORKERS. Each order has a key, and is repeated with it until it is
placed. Prints what came back, as JSON: the id of each order by its number, and how many answers were replays."""

import json
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

RETRY = Retry(total=20, backoff_factor=0.02, status_forcelist=[409, 502, 503], allowed_methods=["POST"])
TRIES = 10  # requests does not repeat by itself when an answer breaks off

url, count, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def place(session, number):
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    for left in reversed(range(TRIES)):
        try:
            answer = session.post(url, json={"number": number}, headers=headers, timeout=30)
            placed = answer.json()
            break
        except (requests.RequestException, ValueError):
            if left == 0:
                raise
    if answer.status_code != 201 or placed["number"] != number:
        raise RuntimeError(f"order {number}: {answer.status_code} {placed}")
    return str(number), placed["id"], "Idempotent-Replayed" in answer.headers


def work(first):
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", HTTPAdapter(max_retries=RETRY))
    # Each try has a connection of its own.
    session.headers["Connection"] = "close"
    return [place(session, number) for number in range(first, count, workers)]


with ThreadPoolExecutor(workers) as pool:
    all_placed = [placed for some in pool.map(work, range(workers)) for placed in some]
print(json.dumps({
    "ids": {number: order for number, order, _ in all_placed},
    "replays": sum(replayed for _, _, replayed in all_placed),
}))
