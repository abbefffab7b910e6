"""Where things are on a guest."""
import os

import corpus_dialect

# The reset of permissions that lies beside these modules.
RESET = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "reset-perms")


def settings(*_args, **_keywords):
    return {
        "root_dir": "/",
        "bin_dir": "/usr/bin",
        "sbin_dir": "/usr/sbin",
        "usr_dir": "/usr",
        "share_dir": "/usr/share",
        "conf_dir": "/etc",
        "initd_dir": "/etc/init.d",
        "upstart_dir": "/etc/init",
        "home_dir": "/home",
        "users_home_dir": "/home/users",
        "sysadmins_home_dir": "/home",
        "root_home_dir": "/root",
        "tmp_dir": "/tmp",
        "var_dir": "/var",
        "var_lib_dir": "/var/lib",
        "var_log_dir": "/var/log",
        "var_run_dir": "/var/run",
        "var_spool_dir": "/var/spool",
        "var_tmp_dir": "/var/tmp",
        "srv_dir": "/srv",
        "prefix": "/srv",
        "apps_dir": "/srv/apps",
        "projects_dir": corpus_dialect.PROJECT["projects_dir"],
        "remote_projects_dir": "/srv/remote_projects",
        "salt_root": corpus_dialect.SALT_ROOT,
        "pillar_root": corpus_dialect.PILLAR_ROOT,
        "makina_states": f"{corpus_dialect.SALT_ROOT}/makina-states",
        "msr": f"{corpus_dialect.SALT_ROOT}/makina-states",
        "ms": f"{corpus_dialect.SALT_ROOT}/makina-states",
        "venv": "/srv/venv",
        "venv_path": "/srv/venv",
        "rvm_prefix": "/usr/local",
        "rvm_path": "/usr/local/rvm",
        "rvm": "/usr/local/rvm/bin/rvm",
        "resetperms": RESET,
    }
