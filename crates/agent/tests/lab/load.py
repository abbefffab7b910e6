# Asks for a page as often as it can for fifteen seconds, by new connections and by kept ones, and says what became of it.
import collections, http.client, sys, threading, time

address, name = sys.argv[1:3]
end = time.monotonic() + 15
count, failed, by, why = collections.Counter(), [0], collections.Counter(), collections.Counter()
# A kept connection may be closed in the moment in which it is used again; whoever keeps some asks once more (RFC 9112, 9.3.1).
again = [0]
lock = threading.Lock()


def ask(connection):
    connection.request("GET", "/", headers={"Host": name})
    answer = connection.getresponse()
    body = answer.read().decode()
    if answer.status != 200:
        raise OSError(f"status {answer.status}")
    return body.split(".")[0]


def visit(keeps):
    connection, was_used = None, False
    while time.monotonic() < end:
        try:
            was_used = connection is not None and keeps
            if not was_used:
                connection = http.client.HTTPConnection(address, timeout=10)
            guest = ask(connection)
            if not keeps:
                connection.close()
            with lock:
                count[keeps] += 1
                by[guest] += 1
        except (OSError, http.client.HTTPException) as error:
            connection = None
            if was_used and isinstance(error, (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)):
                with lock:
                    again[0] += 1
                continue
            with lock:
                failed[0] += 1
                why[repr(error)] += 1
        time.sleep(0.02)


threads = [threading.Thread(target=visit, args=(at % 2 == 0,)) for at in range(10)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(f"new {count[False]} kept {count[True]} failed {failed[0]} again {again[0]} by {dict(by)} {dict(why)}")
