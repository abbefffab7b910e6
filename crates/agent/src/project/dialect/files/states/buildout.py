"""`zc.buildout` in a folder: Salt has no such state any more."""
import os

# Words of its output that tell of a change.
CHANGING = ("Installing ", "Updating ", "Uninstalling ", "Upgraded:", "Generated ", "Develop: ")
# Where one is installed where the folder brings none.
OWN = ".buildout"
LINES = 200


def installed(
    name,
    config="buildout.cfg",
    parts=None,
    user=None,
    runas=None,
    env=(),
    buildout_ver=None,
    offline=False,
    newest=None,
    python="python3",
    debug=False,
    verbose=False,
    **_keywords,
):
    result = {"name": name, "result": True, "comment": "", "changes": {}}
    if __opts__["test"]:
        return {**result, "result": None, "comment": f"buildout would run in {name}"}
    as_user = {"cwd": name, "runas": user or runas, "env": env, "python_shell": False}
    said = ""
    for command in prepare(name, python, buildout_ver) + [run(config, parts, offline, newest, debug, verbose)]:
        done = __salt__["cmd.run_all"](command, **as_user)
        said = "\n".join(f"{done['stdout']}\n{done['stderr']}".strip().split("\n")[-LINES:])
        if done["retcode"] != 0:
            return {**result, "result": False, "comment": f"{' '.join(command)}: exit status {done['retcode']}\n{said}"}
    changed = [line for line in said.split("\n") if line.startswith(CHANGING)]
    return {**result, "comment": said, "changes": {"buildout": changed} if changed else {}}


def prepare(folder, python, version):
    """The commands that bring `bin/buildout`."""
    if os.path.exists(os.path.join(folder, "bin", "buildout")):
        return []
    wanted = f"zc.buildout=={version}.*" if version else "zc.buildout"
    own = os.path.join(OWN, "bin")
    return [
        [python, "-m", "venv", OWN],
        [os.path.join(own, "pip"), "install", "--quiet", "setuptools", wanted],
        [os.path.join(own, "buildout"), "bootstrap"],
    ]


def run(config, parts, offline, newest, debug, verbose):
    command = [os.path.join("bin", "buildout"), "-c", config]
    if newest is not None:
        command.append("-n" if newest else "-N")
    flags = [("-o", offline), ("-D", debug), ("-v", verbose)]
    command += [flag for flag, wanted in flags if wanted]
    if parts:
        command += ["install", *(parts.split() if isinstance(parts, str) else parts)]
    return command
