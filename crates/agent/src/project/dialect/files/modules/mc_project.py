"""The configuration of this project and of others of the guest, as modules and templates of projects ask for it."""
import corpus_dialect


def get_configuration(name=None, *_args, **_keywords):
    # Templates hand on a name, or the mapping that they were given.
    return name if isinstance(name, dict) else corpus_dialect.of(name)


def get_project(name=None, *_args, **_keywords):
    return get_configuration(name)


def get_configuration_item(project, item=None, **_keywords):
    cfg = get_configuration(project)
    return {"key": item or "cfg", "item": cfg.get(item, cfg["data"].get(item)) if item else cfg, "cfg": cfg}
