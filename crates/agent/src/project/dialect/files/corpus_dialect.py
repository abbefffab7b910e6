"""What a project that was made for makina-states finds as `opts['ms_project']`: its configuration as these projects know it.

Such a project has one mapping with facts of where it is (`project_root`, `data_root`) and, below `data`, its own values, in which
`"{data_root}/x"` stands for another value. The layers were laid over each other already; here the facts are told and the braces
are resolved. One mapping is shared by all that is rendered in a run, as recipes change it for those after them.
"""
import contextlib
import fcntl
import json
import os
import re
import secrets
import socket
import string

# Where the layers of the old kind are in the configuration of today.
SECTION = "ms_project"
API_VERSION = "2"
SALT_ROOT = "/srv/salt"
PILLAR_ROOT = "/srv/pillar"
PHASES = ("archive", "release_sync", "install", "rollback", "fixperms", "notify")
# A value that names another one, which may name a third; more than these lead in a circle.
ROUNDS = 50
# No value grows beyond these characters by what it names.
LONGEST = 1 << 20
NAMED = re.compile(r"\{([^{}]+)\}")

# The mapping, the project's configuration of today, and the file of generated passwords.
PROJECT = {}
CONFIGURATION = {}
PASSWORDS = None


def load(configuration, about):
    """Makes the mapping: `about` says what this run is for."""
    global PASSWORDS
    PASSWORDS = about["passwords"]
    CONFIGURATION.update(configuration)
    PROJECT.update(build(configuration, about))


def build(configuration, about):
    section = configuration.get(SECTION) or {}
    facts = told(configuration, about)
    project = {**defaults(configuration), **section, **facts}
    data = project.get("data")
    data = data if isinstance(data, dict) else {}
    data = resolve(resolve(data, [data]), [data, project])
    project["data"] = data
    return resolve(project, [project, data], leave=("data",))


def defaults(configuration):
    """What a layer may say otherwise."""
    user = configuration["user"]
    skipped = {f"skip_{phase}": False for phase in PHASES}
    mappings = {key: {} for key in ("defaults", "env_defaults", "os_defaults", "sls_default_pillar")}
    return {
        "user": user,
        "group": user,
        "groups": [user],
        "no_user": False,
        "no_default_includes": False,
        "keep_archives": configuration.get("archives", 0),
        "installer": "generic",
        "default_env": configuration["environment"],
        "remote_less": False,
        "raw_console_return": False,
        "force_reload": False,
        "only": None,
        "only_steps": None,
        **mappings,
        **skipped,
    }


def told(configuration, about):
    """What no layer can change."""
    name, home = configuration["name"], configuration["root"]
    host, fqdn = socket.gethostname(), socket.getfqdn()
    git = f"{home}/git"
    return {
        "name": name,
        "api_version": API_VERSION,
        "environment": configuration["environment"],
        "fqdn": fqdn,
        "minion_id": host,
        "this_host": fqdn,
        "this_localhost": fqdn,
        "this_port": "22",
        "remote_host": fqdn,
        "projects_dir": os.path.dirname(home),
        "project_dir": home,
        "project_root": configuration["project_root"],
        "salt_root": f"{configuration['project_root']}/.salt",
        "pillar_root": configuration["pillar_root"],
        "data_root": configuration["data"],
        "archives_root": f"{home}/archives",
        "git_root": git,
        "project_git_root": f"{git}/project.git",
        "pillar_git_root": f"{git}/pillar.git",
        "push_salt_url": f"ssh://root@{fqdn}:22{git}/project.git",
        "push_pillar_url": f"ssh://root@{fqdn}:22{git}/pillar.git",
        "wired_salt_root": f"{SALT_ROOT}/makina-projects/{name}",
        "wired_pillar_root": f"{PILLAR_ROOT}/makina-projects/{name}",
        "current_archive_dir": about["archive"],
        "chrono": os.path.basename(about["archive"]),
        "rollback": about["rollback"],
    }


def of(name=None):
    """The mapping of a project of this guest; without a name that of this one."""
    if name in (None, PROJECT["name"]):
        return PROJECT
    home = os.path.join(PROJECT["projects_dir"], os.path.basename(str(name)))
    try:
        with open(os.path.join(home, "configuration.json"), encoding="utf-8") as file:
            other = json.load(file)
    except OSError as error:
        raise KeyError(f"there is no project {name} on this guest") from error
    return build(other, {"archive": f"{home}/archives/none", "rollback": False})


def resolve(value, known, leave=()):
    """The value with what its braces name, by the first of the mappings that knows it; other braces stay."""
    if isinstance(value, dict):
        return {key: inner if key in leave else resolve(inner, known) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [resolve(inner, known) for inner in value]
    if not isinstance(value, str):
        return value
    for _ in range(ROUNDS):
        whole = NAMED.fullmatch(value)
        named = find(whole[1], known) if whole else None
        if isinstance(named, (dict, list)):
            # One that names itself stays as it is.
            return resolve(named, [without(mapping, whole[1]) for mapping in known])
        said = NAMED.sub(lambda match: in_words(match, known), value)
        if said == value or len(said) > LONGEST:
            break
        value = said
    return value


def find(name, known):
    return next((mapping[name] for mapping in known if name in mapping), None)


def without(mapping, name):
    return {key: value for key, value in mapping.items() if key != name}


def in_words(match, known):
    return next((str(mapping[match[1]]) for mapping in known if match[1] in mapping), match[0])


# What states called otherwise when these recipes were written. Salt takes no notice of words that it does not know any more:
# what was to run as the project's user would run as root.
RENAMED = {
    "cmd": {"user": "runas"},
    "git": {"runas": "user"},
    "pip": {"runas": "user"},
    "virtualenv": {"runas": "user"},
}
# What they do by themselves today.
DROPPED = {"user": ("gid_from_name",)}


def modern(low):
    """A state in the words of today."""
    for before, now in RENAMED.get(low["state"], {}).items():
        if before in low:
            low.setdefault(now, low.pop(before))
    for word in DROPPED.get(low["state"], ()):
        low.pop(word, None)
    # One that is named twice was installed once; Salt refuses the list nowadays.
    packages = low.get("pkgs") if low["state"] == "pkg" else None
    if isinstance(packages, list):
        low["pkgs"] = [package for at, package in enumerate(packages) if package not in packages[:at]]


@contextlib.contextmanager
def locked(path):
    with open(f"{path}.lock", "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def password(length=16):
    """One that nobody knows yet, of letters and digits."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(length))


def stored_password(key, length=16, force=False, value=None):
    """The password of a key, the same one each time it is asked for, made when it is asked for first."""
    with locked(PASSWORDS):
        stored = read(PASSWORDS)
        if value is not None or force or not stored.get(key):
            stored[key] = password(length) if value is None else value
            beside = f"{PASSWORDS}.new"
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                json.dump(stored, file, indent=2, sort_keys=True)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, PASSWORDS)
        return stored[key]


# What a failure names that is no part of Corpus: a formula, or a module of one.
MISSING = [
    (re.compile(r"(?:SLS |include |template |[\"' (])(makina-states[./][\w./-]+)"), "formula"),
    (re.compile(r"(?:no attribute|State) '(mc_[a-z0-9_]+)(?:\.\w+)?'"), "module"),
]


def missing(error):
    """What of others' an error says is not there, in words, or nothing."""
    # What Salt quotes of a file that failed may name others, which are there.
    said = error.split("\n---\n")[0]
    for pattern, kind in MISSING:
        found = pattern.search(said)
        if found:
            name = re.sub(r"\.(sls|jinja)$|/init\.sls$", "", found[1])
            return f"the {kind} {name} is not on this guest: bring it to {SALT_ROOT}, or name its folder in `salt_roots`"
    return None
