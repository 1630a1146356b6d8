#!/usr/bin/python3
"""A replica that does what a test tells it: an HTTP server on its own address in TF_CONFIG.

usage: replica_server.py DIRECTORY [ARGUMENT...]

DIRECTORY/NAME.up ("worker-1.up") holds "PID HOST:PORT" once the server listens. It answers /tfconfig,
/env?name=NAME, /args, and ends by itself on /exit?code=N and /exit?signal=N.
"""

import http.server
import json
import os
import sys
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path == "/exit":
            self.answer("bye")
            end(**query)
        elif url.path == "/env":
            self.answer(os.environ.get(query["name"], ""))
        elif url.path == "/tfconfig":
            self.answer(os.environ.get("TF_CONFIG", ""))
        elif url.path == "/args":
            self.answer(json.dumps(sys.argv[2:]))
        else:
            self.send_error(404)

    def answer(self, text):
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *unused):
        pass


def end(code=None, signal=None):
    sys.stdout.flush()
    if signal is not None:
        os.kill(os.getpid(), int(signal))
    os._exit(int(code))


def own_name_and_address():
    if "TF_CONFIG" not in os.environ:
        return "alone-0", "127.0.0.1:0"
    config = json.loads(os.environ["TF_CONFIG"])
    task = config["task"]
    addresses = config["cluster"][task["type"]]
    own = addresses[str(task["index"])] if isinstance(addresses, dict) else addresses[task["index"]]
    return f"{task['type']}-{task['index']}", own


def main():
    name, address = own_name_and_address()
    host, port = address.split(":")
    server = http.server.HTTPServer((host, int(port)), Handler)
    path = os.path.join(sys.argv[1], f"{name}.up")
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {host}:{server.server_port}")
    os.replace(f"{path}.new", path)
    print(f"{name} is up", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
