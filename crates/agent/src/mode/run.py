"""Salt as the agent of Corpus starts it: run.py PACKAGES FOLDER WHAT …

WHAT is `master` or `minion` (which go on), `ping` (whether the minion's master takes it), or `states RESULT [test]`: all states that
the top file names are made so, or tried, and what became of them is written to RESULT as JSON; or `salt`, `call`, `key`, `run`, as a
person types them, with their arguments. FOLDER has the configuration of each.
"""
import json
import os
import signal
import socket
import sys
import time
import traceback
import warnings

PACKAGES, FOLDER, WHAT = sys.argv[1:4]
# Not by PYTHONPATH: what the states start must not see Salt's packages.
sys.path.insert(0, PACKAGES)
warnings.showwarning = lambda *_, **__: None
# How long a master may take to start, and a minion to be taken by it, in seconds.
STARTS = 30
TAKEN = 60
# As many states are told, and as much of what each says.
STATES = 200
COMMENT = 1000


def serve():
    import salt.scripts

    sys.argv = ["salt-" + WHAT, "-c", os.path.join(FOLDER, WHAT), "--log-level=warning"]
    getattr(salt.scripts, "salt_" + WHAT)()


def typed():
    import salt.scripts

    programs = {"salt": "salt_main", "call": "salt_call", "key": "salt_key", "run": "salt_run"}
    folder = os.path.join(FOLDER, "minion" if WHAT == "call" else "master")
    sys.argv = ["salt-" + WHAT, "-c", folder, *sys.argv[4:]]
    getattr(salt.scripts, programs[WHAT])()


def caller():
    import salt.client
    import salt.config
    import salt.exceptions

    opts = salt.config.minion_config(os.path.join(FOLDER, "minion", "minion"))
    # One that is not taken ends, in place of asking for ever.
    opts.update(caller=True, auth_tries=2, auth_timeout=5, master_tries=1, log_file=os.devnull)
    opts.update(request_channel_timeout=15, request_channel_tries=1)
    if opts["file_client"] == "local":
        return salt.client.Caller(mopts=opts)
    # Salt would ask a master that is away for ever.
    place = (opts["master"], opts["master_port"])
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("%s:%s does not answer" % place))
    signal.alarm(TAKEN)
    until = time.monotonic() + STARTS
    while True:
        try:
            socket.create_connection(place, 10).close()
            break
        except OSError as error:
            if time.monotonic() >= until:
                sys.exit("%s:%s does not answer: %s" % (*place, error))
            time.sleep(0.1)
    try:
        return salt.client.Caller(mopts=opts)
    except salt.exceptions.SaltClientError as error:
        what = "does not answer" if "timeout" in str(error) else "does not take this minion"
        sys.exit("%s:%s %s: %s" % (*place, what, error))
    finally:
        signal.alarm(0)


def in_words(value):
    return value if isinstance(value, str) else json.dumps(value, default=str)


def one(tag, state):
    """A state by its tag, `module_|-id_|-name_|-function`, and what Salt says of it."""
    parts = (tag.split("_|-") + ["", "", ""])[:4] if "_|-" in tag else [tag, tag, tag, ""]
    duration = str(state.get("duration") or 0).split()[0]
    return {
        "id": in_words(state.get("__id__") or parts[1]),
        "function": parts[0] + "." + parts[3],
        "name": in_words(state.get("name") or parts[2]),
        "ok": state.get("result") is not False,
        "changed": bool(state.get("changes")) or state.get("result") is None,
        "comment": in_words(state.get("comment") or "").rstrip()[:COMMENT],
        "elapsed_ms": int(float(duration)),
    }


def told(result):
    if not isinstance(result, dict):
        errors = result if isinstance(result, list) else [result]
        comment = "\n".join(in_words(error) for error in errors)[:COMMENT]
        one_error = {"id": "top.sls", "function": "sls.render", "name": "top.sls", "comment": comment}
        return [{**one_error, "ok": False, "changed": False, "elapsed_ms": 0}]
    ran = sorted(result.items(), key=lambda item: item[1].get("__run_num__", 0))
    return [one(tag, state) for tag, state in ran]


def states():
    salt = caller()
    expected = salt.opts.get("corpus_pillar_of")
    if expected and (salt.sminion.opts["pillar"].get("corpus") or {}).get("guest") != expected:
        # Salt would go on with an empty pillar, and say that all is well.
        sys.exit("the master gave no pillar of Corpus to this guest: nothing was done")
    result = salt.cmd("state.apply", **({"test": True} if sys.argv[5:] == ["test"] else {}))
    # So Salt says that the top file names nothing for this guest, or is not there.
    nothing = isinstance(result, dict) and list(result) == ["no_|-states_|-states_|-None"]
    every = [] if nothing else told(result)
    kept = sorted(every, key=lambda state: (state["ok"], not state["changed"]))[:STATES]
    answer = {
        # In the order in which they ran.
        "states": [state for state in every if any(state is one for one in kept)] if len(every) > STATES else every,
        "ran": len(every),
        "failed": sum(not state["ok"] for state in every),
        "changed": sum(state["changed"] for state in every),
    }
    with open(sys.argv[4] + ".part", "w", encoding="utf-8", errors="replace") as file:
        json.dump(answer, file)
    os.replace(sys.argv[4] + ".part", sys.argv[4])


def ping():
    caller().cmd("test.ping")


def main(work):
    """Ends at once: what Salt leaves to Python's own end may wait there for threads that begin no more (seen with 3008.3)."""
    code = 1
    try:
        work()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main({"master": serve, "minion": serve, "ping": ping, "states": states}.get(WHAT, typed))
