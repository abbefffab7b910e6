"""A Salt master, from the packages that Corpus brought: run.py PACKAGES FOLDER.

FOLDER/values.json is its configuration, without who it runs as.
"""
import ctypes
import getpass
import json
import os
import signal
import sys
import warnings

# It ends with who started it, even if that one is killed: two masters of one folder would be at each other's keys.
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

PACKAGES, FOLDER = sys.argv[1:3]
sys.path.insert(0, PACKAGES)
warnings.showwarning = lambda *_, **__: None

with open(os.path.join(FOLDER, "values.json"), encoding="utf-8") as file:
    values = json.load(file)
values["user"] = getpass.getuser()
with open(os.path.join(FOLDER, "master"), "w", encoding="utf-8") as file:
    # What is JSON is YAML.
    json.dump(values, file, indent=1)

import salt.scripts

sys.argv = ["salt-master", "-c", FOLDER, "--log-level=warning"]
salt.scripts.salt_master()
