"""How packages are installed, and of which release."""


def settings():
    release = __grains__.get("oscodename", "")
    apt = {"dist": release, "stable": release, "comps": "main", "mirror": "http://deb.debian.org/debian"}
    return {
        "installmode": "installed",
        "keyserver": "keyserver.ubuntu.com",
        "dist": release,
        "lts_dist": release,
        "udist": release,
        "ddist": release,
        "ubuntu_lts": release,
        "debian_stable": release,
        "apt": {__grains__.get("os", "Debian").lower(): apt},
    }
