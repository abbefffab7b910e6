"""Users of a password file of a web server, by `htpasswd`: Salt has no such state any more."""
import os
import subprocess

import salt.utils.path


def user_exists(name, password=None, htpasswd_file=None, options="", force=False, update=False, **_keywords):
    result = {"name": name, "result": True, "comment": f"{name} is in {htpasswd_file}", "changes": {}}
    if name in users(htpasswd_file) and not ((force or update) and not holds(htpasswd_file, name, password)):
        return result
    if __opts__["test"]:
        return {**result, "result": None, "comment": f"{name} would be written to {htpasswd_file}"}
    # Only letters of htpasswd that choose a digest; by standard input, as a command line is everybody's to read.
    flags = "".join(letter for letter in str(options) if letter in "mBdsp")
    create = "" if os.path.exists(htpasswd_file) else "c"
    failed = htpasswd([f"-i{flags}{create}", htpasswd_file, name], password)
    if failed:
        return {**result, "result": False, "comment": failed}
    return {**result, "changes": {name: "written"}}


def user_absent(name, htpasswd_file=None, **_keywords):
    result = {"name": name, "result": True, "comment": f"{name} is not in {htpasswd_file}", "changes": {}}
    if name not in users(htpasswd_file):
        return result
    if __opts__["test"]:
        return {**result, "result": None, "comment": f"{name} would be removed from {htpasswd_file}"}
    failed = htpasswd(["-D", htpasswd_file, name], None)
    return {**result, "result": False, "comment": failed} if failed else {**result, "changes": {name: "removed"}}


def users(path):
    try:
        with open(path, encoding="utf-8") as file:
            return [line.split(":")[0] for line in file if ":" in line]
    except FileNotFoundError:
        return []


def holds(path, name, password):
    return not htpasswd(["-vi", path, name], password)


def htpasswd(words, password):
    """What went wrong, if anything did."""
    program = salt.utils.path.which("htpasswd")
    if not program:
        return "htpasswd is not on this guest: it comes with the package apache2-utils"
    done = subprocess.run([program, *words], input=f"{password}\n".encode(), capture_output=True, check=False)
    return None if done.returncode == 0 else done.stderr.decode(errors="replace").strip() or f"htpasswd: {done.returncode}"
