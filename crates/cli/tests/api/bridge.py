"""An HTTP server on a loopback port in front of the daemon's unix socket.

It reads a request as a whole, passes it on, and gives back what came of it. An answer that goes on (events, output, a
hold) is cut after a moment at the end of a line, which closes the connection to the daemon, as any reader may.
"""

import http.client
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Answers that may go on forever. A long list has no length either, and is read to its end.
STREAMS = ("application/x-ndjson", "text/event-stream")
# How long such an answer is read: the daemon has said its first lines long before.
STREAM_SECONDS = 0.15
# Far longer than any answer takes.
ANSWER_SECONDS = 60
OWN_FIELDS = {"connection", "transfer-encoding", "content-length", "host", "date", "server"}


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("pinfold", timeout=ANSWER_SECONDS)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Bridge:
    """Serves until it is closed. `done` is called with each request that the daemon did."""

    def __init__(self, socket_path, done=lambda method, path: None, turn=lambda status: status):
        self.socket_path, self.done, self.turn = socket_path, done, turn
        self.statuses = {}
        self.counting = threading.Lock()
        bridge = self

        class Handler(Passing):
            pass

        Handler.bridge = bridge
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def count(self, method, path, status):
        with self.counting:
            key = (method, path.split("?")[0], status)
            self.statuses[key] = self.statuses.get(key, 0) + 1


class Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A client that closes a connection it no longer needs is not an error."""
        if not isinstance(sys.exc_info()[1], ConnectionResetError):
            super().handle_error(request, client_address)


class Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bridge = None

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        fields = {name: value for name, value in self.headers.items() if name.lower() not in OWN_FIELDS}
        connection = UnixConnection(self.bridge.socket_path)
        try:
            connection.request(self.command, self.path, body, fields)
            answer = connection.getresponse()
            status, said = self.bridge.turn(answer.status), self.read(connection, answer)
        finally:
            connection.close()
        self.bridge.count(self.command, self.path, status)
        if status == 200:
            self.bridge.done(self.command, self.path)
        self.give(status, answer, said)

    @staticmethod
    def read(connection, answer):
        kind = (answer.getheader("content-type") or "").split(";")[0]
        if answer.length is not None or kind not in STREAMS:
            return answer.read()
        until, said = time.monotonic() + STREAM_SECONDS, b""
        while (left := until - time.monotonic()) > 0:
            connection.sock.settimeout(left)
            try:
                piece = answer.read1(1 << 16)
            except TimeoutError:
                break
            if not piece:
                return said
            said += piece
        return said[: said.rfind(b"\n") + 1]

    def give(self, status, answer, said):
        self.send_response_only(status)
        for name, value in answer.getheaders():
            if name.lower() not in OWN_FIELDS:
                self.send_header(name, value)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = do_HEAD = do_OPTIONS = do_TRACE = pass_on

    def log_message(self, *_):
        pass
