"""`git.latest` by its words of before."""

# What it is called today.
NAMES = {"runas": "user", "force": "force_clone", "remote_name": "remote"}
# What it does by itself today.
GONE = ("always_fetch", "firstrun", "use_vt", "output_loglevel")
# A branch as a clone sees it.
REMOTE = "remotes/origin/"


def latest(name, target=None, rev=None, **keywords):
    asked = {NAMES.get(key, key): value for key, value in keywords.items() if key not in GONE and not key.startswith("__")}
    rev = str(rev or "HEAD")
    if rev.startswith(REMOTE):
        rev = rev[len(REMOTE):]
    return __states__["git.latest"](name, target=target, rev=rev, **asked)
