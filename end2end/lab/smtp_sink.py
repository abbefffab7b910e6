"""A mail server that delivers nothing: each message becomes a JSON line in a file.

smtp_sink.py PORT FILE
"""

import asyncore
import json
import smtpd
import sys


class Sink(smtpd.SMTPServer):
    def __init__(self, port, path):
        super().__init__(("127.0.0.1", port), None)
        self.path = path

    def process_message(self, peer, mailfrom, rcpttos, data, **options):
        message = {"from": mailfrom, "to": rcpttos, "data": data.decode("utf-8", "replace")}
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(message) + "\n")


if __name__ == "__main__":
    Sink(int(sys.argv[1]), sys.argv[2])
    asyncore.loop()
