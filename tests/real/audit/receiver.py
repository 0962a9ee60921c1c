"""A webhook: writes each request that it gets to a file, as one line. While the file `down` exists, it responds with 503.

receiver.py DIR PORT
"""

import http.server
import pathlib
import ssl
import sys

directory, port = pathlib.Path(sys.argv[1]), int(sys.argv[2])


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        code = 503 if (directory / "down").exists() else 200
        expected = ("/events", "Bearer secret", "application/json")
        if (self.path, self.headers["Authorization"], self.headers["Content-Type"]) != expected:
            code = 400
        with open(directory / "received", "ab") as file:
            file.write(b"%d " % code + body + b"\n")
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(directory / "webhook.crt", directory / "webhook.key")
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Receiver)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
