"""One recipe by `salt-call --local`, as the agent of Corpus starts it: launch.py ORDER.

ORDER is a JSON file: `packages` (Salt's), `folder` (its configuration), `configuration` (the project's, a JSON file), `result`,
and what is to be done: `act` is `apply` (the recipe `sls` is), `render` (whether it could be) or `values` (files of values, `paths`,
are read as Salt reads pillars). Beside what salt-call does, the mapping `cfg` is in the context of everything that is
rendered, and each state is told as soon as it is done: failed ones on standard error. Salt's own result goes to the file
`result`.

`dialect`, where a project was made for makina-states, says where what such projects rely on lies (`folder`), and what this run is
for; `opts['ms_project']` is there then.
"""
import json
import logging
import os
import re
import sys
import time
import warnings

with open(sys.argv[1], encoding="utf-8") as file:
    ORDER = json.load(file)
with open(ORDER["configuration"], encoding="utf-8") as file:
    CFG = json.load(file)
# Not by PYTHONPATH: what the states start must not see Salt's packages.
sys.path.insert(0, ORDER["packages"])
DIALECT = ORDER["dialect"]
if DIALECT:
    sys.path.insert(0, DIALECT["folder"])
    import corpus_dialect

    corpus_dialect.load(CFG, DIALECT["about"])
    # Such recipes let root work in what belongs to the project's user, which git refuses nowadays.
    os.environ.update(GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*")

import salt.client
import salt.exceptions
import salt.state
import salt.utils.templates
from salt.scripts import salt_call

# Salt asks for its warnings again; they are for who writes Salt.
warnings.showwarning = lambda *_, **__: None
# As many lines of a state's comment or changes as a person reads.
LINES = 200


def with_cfg(render):
    def rendered(*args, context=None, **keywords):
        if DIALECT and "opts" in keywords:
            keywords["opts"] = with_project(keywords["opts"])
        return render(*args, context={"cfg": CFG, **(context or {})}, **keywords)

    return rendered


def with_project(opts):
    """Salt's options are a mapping of copies: the project's must be the one that all templates change."""
    return {**(opts.value() if hasattr(opts, "value") else opts), "ms_project": corpus_dialect.PROJECT}


def give_cfg():
    registry = salt.utils.templates.TEMPLATE_REGISTRY
    for name, render in list(registry.items()):
        registry[name] = with_cfg(render)
        if hasattr(salt.utils.templates, name.upper()):
            setattr(salt.utils.templates, name.upper(), registry[name])


class Teller:
    """Writes lines; the two pipes are read apart, so a change of pipe leaves time for the other one."""

    def __init__(self):
        self.told = set()
        self.pipe = sys.stdout

    def lines(self, lines, failed):
        pipe = sys.stderr if failed else sys.stdout
        if pipe is not self.pipe:
            self.pipe.flush()
            time.sleep(0.05)
        self.pipe = pipe
        print(*lines, sep="\n", file=pipe, flush=True)

    def states(self, running):
        ready = [(tag, state) for tag, state in running.items() if isinstance(state, dict) and "proc" not in state]
        for tag, state in sorted(ready, key=lambda item: item[1].get("__run_num__", 0)):
            if tag not in self.told and "result" in state:
                self.told.add(tag)
                self.lines(block(tag, state), state["result"] is False)


def indented(label, text):
    lines = str(text).rstrip("\n").split("\n")
    if len(lines) > LINES:
        lines[LINES:] = [f"... {len(lines) - LINES} more lines"]
    yield f"{label:>12}: {lines[0]}"
    for line in lines[1:]:
        yield " " * 14 + line


def block(tag, state):
    parts = tag.split("_|-")
    identity = state.get("__id__", parts[1])
    yield "----------"
    yield from indented("ID", identity)
    yield from indented("Function", f"{parts[0]}.{parts[-1]}")
    if state.get("name", identity) != identity:
        yield from indented("Name", state["name"])
    yield from indented("Result", state["result"])
    yield from indented("Comment", state.get("comment", ""))
    for key, value in changes(state.get("changes")):
        yield from indented(key, value)


def changes(changed):
    if not isinstance(changed, dict):
        return [("Changes", changed)] if changed else []
    quiet = ("pid", "retcode")
    shown = [(key, value) for key, value in changed.items() if key not in quiet and value not in ("", None, {})]
    return [(key, value if isinstance(value, str) else json.dumps(value, default=str)) for key, value in shown]


def tell_states(teller):
    chunk, chunks = salt.state.State.call_chunk, salt.state.State.call_chunks

    def call_chunk(self, low, running, *args, **keywords):
        if DIALECT:
            corpus_dialect.modern(low)
        result = chunk(self, low, running, *args, **keywords)
        teller.states(running)
        return result

    def call_chunks(self, *args, **keywords):
        running = chunks(self, *args, **keywords)
        teller.states(running)
        return running

    salt.state.State.call_chunk, salt.state.State.call_chunks = call_chunk, call_chunks


def tell_errors(teller):
    """What Salt has to say when there are no states: an error in a file."""
    try:
        with open(ORDER["result"], encoding="utf-8") as file:
            result = json.load(file).get("local")
    except (OSError, ValueError):
        return
    if not isinstance(result, dict):
        for error in result if isinstance(result, list) else [result]:
            missing = corpus_dialect.missing(str(error)) if DIALECT else None
            lines = str(error).rstrip("\n").split("\n")
            teller.lines([f"Missing: {missing}", *lines] if missing else lines, True)


def values():
    """Files of values. What can't be read may be a secret, so an error is told by its first line, which quotes nothing."""
    logging.disable(logging.CRITICAL)
    caller = salt.client.Caller(c_path=os.path.join(ORDER["folder"], "minion"))
    read = {}
    for name, path in ORDER["paths"].items():
        try:
            read[name] = caller.cmd("slsutil.renderer", path=path, default_renderer="jinja|yaml")
        except salt.exceptions.SaltException as error:
            missing = corpus_dialect.missing(str(error)) if DIALECT else None
            if missing:
                sys.exit(f"{name}: {missing}")
            first, line = str(error).split("\n", 1)[0], re.search(r"line \d+", str(error))
            sys.exit(f"{name}: {first}" if not line or line[0] in first else f"{name}: {first}; {line[0]}")
    with open(ORDER["result"], "w", encoding="utf-8") as file:
        json.dump(read, file, default=str)


def main():
    teller = Teller()
    give_cfg()
    if ORDER["act"] == "values":
        return values()
    tell_states(teller)
    sys.argv = ["salt-call", "--local", "--config-dir", ORDER["folder"], "--retcode-passthrough", "--log-level=quiet",
                "--out=json", f"--out-file={ORDER['result']}",
                "state.show_sls" if ORDER["act"] == "render" else "state.apply", "mods=" + json.dumps([ORDER["sls"]])]
    try:
        salt_call()
    finally:
        tell_errors(teller)


if __name__ == "__main__":
    main()
