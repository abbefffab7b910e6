"""Notes over HTTP: GET / lists them, POST / adds one, GET /health tells whether all is well."""
import html
import json
import os
import signal
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from app.database import MIGRATIONS, connect, version

TITLE = os.environ.get("TITLE", "Notes")
LONGEST = 10_000


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/health":
            ok = version(connect()) == len(MIGRATIONS)
            self.answer(200 if ok else 500, "application/json", json.dumps({"ok": ok}))
        elif self.path == "/":
            notes = connect().execute("select text from note order by id desc").fetchall()
            items = "".join(f"<li>{html.escape(text)}" for (text,) in notes)
            self.answer(200, "text/html", f"<!doctype html><title>{TITLE}</title><h1>{TITLE}</h1><ul>{items}</ul>")
        else:
            self.answer(404, "text/plain", "there is no such page\n")

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        if not 0 < length <= LONGEST:
            self.answer(413, "text/plain", "a note has 1 to 10,000 bytes\n")
            return
        text = self.rfile.read(length).decode("utf-8", "replace")
        with connect() as database:
            database.execute("insert into note (text, at) values (?, datetime('now'))", (text,))
        self.answer(201, "text/plain", "noted\n")

    def answer(self, status, kind, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main():
    server = ThreadingHTTPServer(("", 0), Handler, bind_and_activate=False)
    # Requests that are being answered are answered to their end.
    server.daemon_threads = False
    # The socket that systemd holds: sd_listen_fds(3).
    server.socket = socket.socket(fileno=3)
    server.server_address, server.server_name = server.socket.getsockname(), "app"
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever()
    server.server_close()


if __name__ == "__main__":
    main()
