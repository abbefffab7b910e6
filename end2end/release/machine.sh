# shellcheck shell=bash
# A machine to install Corpus on: a privileged LXC container with systemd, as a fresh Debian has it.
# Source lib.sh and rootfs.sh first.

MACHINE_PACKAGES=systemd-sysv,dbus,iproute2,procps,curl,ca-certificates,sudo,less
MACHINE_RECIPE=$ROOT/end2end/release/recipe-machine
MACHINE_FOLDER=/var/lib/corpus-release

machine_system() { printf '%s/lab/%s' "$CACHE" "$(rootfs_name machine "$MACHINE_PACKAGES" "$MACHINE_RECIPE")"; }

# apt's lists and cache stay, which mmdebstrap would empty.
machine_build() {
  local system
  system=$(machine_system)
  rm -rf --one-file-system "$system.part"
  mkdir -p "$CACHE/lab"
  mmdebstrap --quiet --mode=root --variant=important --skip=cleanup/apt "${NO_DOCS[@]}" \
    --include="$MACHINE_PACKAGES" --customize-hook="$MACHINE_RECIPE \"\$1\"" \
    "$SUITE" "$system.part" ${CORPUS_MIRROR:+"$CORPUS_MIRROR"}
  mv "$system.part" "$system"
}

# Its network is that of this machine, where the directory and the name server of a lab listen on
# loopback; its files, its processes and its systemd are its own.
machine_config() {
  cat <<CONFIG
lxc.include = /usr/share/lxc/config/common.conf
lxc.arch = linux64
lxc.uts.name = corpus
lxc.rootfs.path = overlay:$(machine_system):$MACHINE_FOLDER/delta
lxc.log.file = $MACHINE_FOLDER/lxc.log
lxc.net.0.type = none
lxc.apparmor.profile = unconfined
lxc.mount.auto =
lxc.mount.auto = cgroup:rw:force proc:mixed sys:mixed
lxc.cap.drop =
lxc.cap.drop = sys_time sys_module sys_boot net_admin
lxc.tty.max = 0
CONFIG
}

# machine_up: always a new one.
machine_up() {
  machine_down
  [ -d "$(machine_system)" ] || step "build the system of the machine" machine_build
  mkdir -p "$MACHINE_FOLDER/machines/corpus" "$MACHINE_FOLDER/delta/etc"
  printf '127.0.0.1 localhost\n127.0.1.1 corpus\n' >"$MACHINE_FOLDER/delta/etc/hosts"
  machine_config >"$MACHINE_FOLDER/machines/corpus/config"
  lxc-start -P "$MACHINE_FOLDER/machines" -n corpus
  wait_for 60 "the machine to boot" machine_booted
}
machine_booted() { inside systemctl is-system-running | grep -qE 'running|degraded'; }

machine_down() {
  ! lxc-info -P "$MACHINE_FOLDER/machines" -n corpus -sH 2>/dev/null | grep -q RUNNING \
    || lxc-stop -P "$MACHINE_FOLDER/machines" -n corpus -k
  rm -rf --one-file-system "$MACHINE_FOLDER"
}

# inside COMMAND…: as root on the machine, with nothing of this shell's environment.
inside() {
  lxc-attach -P "$MACHINE_FOLDER/machines" -n corpus --clear-env \
    -v HOME=/root -v LANG=C.UTF-8 -v DEBIAN_FRONTEND=noninteractive -v PATH=/usr/sbin:/usr/bin:/sbin:/bin -- "$@" </dev/null
}
# place FILE PATH: copies a file onto the machine.
place() { lxc-attach -P "$MACHINE_FOLDER/machines" -n corpus --clear-env -- tee "$2" <"$1" >/dev/null; }
