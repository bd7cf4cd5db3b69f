"""A plain order service: POST /orders appends, GET /orders lists. It knows nothing of keys and repeats."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MOMENT = 0.005  # what an order takes, in seconds

orders = []
lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(MOMENT)
        with lock:
            order["id"] = f"order-{len(orders)}"
            orders.append(order)
        self.answer(201, order)

    def do_GET(self):
        with lock:
            self.answer(200, orders)

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


server = Server(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
