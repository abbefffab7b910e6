"""A state that does nothing: others are ordered by it, and what it watches is watched through it."""


def hook(name, changes=None, **_keywords):
    return {"name": name, "result": True, "comment": "nothing to do; others are ordered by it", "changes": changes or {}}


def mod_watch(name, **_keywords):
    return hook(name, changes={"watched": "changed"})
