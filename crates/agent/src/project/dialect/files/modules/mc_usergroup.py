"""Accounts that projects share: the group of those who edit files."""
import grp

GROUP = "editor"


def settings():
    try:
        number = grp.getgrnam(GROUP).gr_gid
    except KeyError:
        number = None
    return {
        "group": GROUP,
        "groupId": number,
        "users": {},
        "sudoers": [],
        "sysadmins": [],
        "defaultSysadmins": ["root"],
        "admin": {"sudoers": [], "sysadmins_keys": [], "sysadmin_password": None, "root_password": None},
    }
