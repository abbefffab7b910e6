# shellcheck shell=bash
# Compute nodes: privileged LXC containers with systemd, sshd and LXC of
# their own, each on its own address of a bridge that leads nowhere else.

NODES=(node1 node2)
# That of `make up` has one more: its sample is on two, and the third is there to be linked by hand.
[ "${CORPUS_LAB_NAME:-lab}" != lab ] || NODES+=(node3)
NODE_PACKAGES=systemd-sysv,dbus,openssh-server,sudo,iproute2,iputils-ping,procps,kmod,lxc,lxc-templates,busybox-static,haproxy,nftables,python3,git,rsync,xz-utils,zstd,e2fsprogs,btrfs-progs,socat,dnsmasq-base,debootstrap,curl,ca-certificates,lxcfs,unbound

node_number() { printf '%s' "${1#node}"; }
node_address() { printf '%s.1%s' "$NET" "$(node_number "$1")"; }
node_veth() { printf 'vlab%s%s' "$INDEX" "$1"; }
node_folder() { printf '%s/nodes/%s' "$STATE" "$1"; }
node_running() { [ "$(lxc-info -P "$STATE/nodes" -n "$1" -sH 2>/dev/null)" = RUNNING ]; }
known_node() { [[ " ${NODES[*]} " == *" $1 "* ]] || die "there is no node '$1'; there are: ${NODES[*]}"; }
running_node() { known_node "$1"; node_running "$1" || die "$1 does not run: lab up"; }

# The unpacked system is shared by all nodes of all instances as a read-only
# lower layer; it lives in the cache because unpacking it takes seconds.
node_lower() { printf '%s/lab/%s' "$CACHE" "$(rootfs_name node "$NODE_PACKAGES" "$LAB/recipe-node")"; }

node_rootfs_built() { [ -d "$(node_lower)" ]; }

node_rootfs_build() {
  local lower
  lower=$(node_lower)
  rootfs_build "$lower.tar.zst" "$NODE_PACKAGES" "$LAB/recipe-node"
  rm -rf --one-file-system "$lower.part"
  mkdir -p "$lower.part"
  tar -C "$lower.part" --numeric-owner -xpf "$lower.tar.zst"
  mv "$lower.part" "$lower"
}

bridge_up() {
  ip link show "$BRIDGE" >/dev/null 2>&1 || ip link add "$BRIDGE" type bridge
  ip address replace "$NET.1/24" dev "$BRIDGE"
  ip link set "$BRIDGE" up
}

# What differs between nodes goes into the upper layer before the first boot:
# own name and host keys, and the lab's key for whoever debugs.
node_identity() {
  local delta=$1 kind
  mkdir -p "$delta/etc/ssh"
  for kind in ed25519 ecdsa; do
    ssh-keygen -q -t "$kind" -N '' -C "$2" -f "$delta/etc/ssh/ssh_host_${kind}_key"
  done
  install -m 644 "$STATE/id.pub" "$delta/etc/ssh/lab_authorized_keys"
  printf '127.0.0.1 localhost\n127.0.1.1 %s\n::1 localhost ip6-localhost\n' "$2" >"$delta/etc/hosts"
}

node_config() {
  local node=$1 folder=$2
  cat <<CONFIG
lxc.include = /usr/share/lxc/config/common.conf
lxc.arch = linux64
lxc.uts.name = $node
lxc.rootfs.path = overlay:$(node_lower):$folder/delta
lxc.log.file = $folder/lxc.log
lxc.net.0.type = veth
lxc.net.0.link = $BRIDGE
lxc.net.0.flags = up
lxc.net.0.name = eth0
# A fixed name on the host's side, to cut it; a fixed MAC, because a new one at
# the old address is not believed for up to 40 s.
lxc.net.0.veth.pair = $(node_veth "$node")
lxc.net.0.hwaddr = 00:16:3e:$((77 + INDEX)):00:1$(node_number "$node")
lxc.net.0.ipv4.address = $(node_address "$node")/24
lxc.apparmor.profile = unconfined
# proc:rw would let the node's sysctl settings reach the host.
lxc.mount.auto =
lxc.mount.auto = cgroup:rw:force proc:mixed sys:mixed
lxc.mount.entry = proc dev/.lxc/proc proc create=dir,optional 0 0
lxc.mount.entry = sys dev/.lxc/sys sysfs create=dir,optional 0 0
# Guests in the node use overlays, and an upper layer cannot itself lie on an overlay.
lxc.mount.entry = $folder/lxc var/lib/lxc none bind,create=dir 0 0
lxc.mount.entry = $folder/corpus var/lib/corpus none bind,create=dir 0 0
lxc.mount.entry = /dev/fuse dev/fuse none bind,optional,create=file 0 0
lxc.mount.entry = /dev/net/tun dev/net/tun none bind,optional,create=file 0 0
# Guests with a disk of their own need loop devices; the kernel's are shared by all nodes.
lxc.mount.entry = /dev/loop-control dev/loop-control none bind,optional,create=file 0 0
lxc.hook.autodev = $LAB/node-devices
# sys_boot stays: without it a reboot inside does nothing.
lxc.cap.drop =
lxc.cap.drop = sys_time sys_module
lxc.cgroup.devices.allow = c 10:200 rwm
lxc.cgroup.devices.allow = c 10:237 rwm
lxc.cgroup.devices.allow = b 7:* rwm
lxc.tty.max = 0
CONFIG
}

node_start() {
  local node=$1 folder
  ! node_running "$node" || return 0
  folder=$(node_folder "$node")
  if [ ! -d "$folder/delta" ]; then
    mkdir -p "$folder/lxc" "$folder/corpus"
    rm -rf "$folder/delta.new"
    node_identity "$folder/delta.new" "$node"
    mv "$folder/delta.new" "$folder/delta"
  fi
  node_config "$node" "$folder" >"$folder/config"
  lxc-start -P "$STATE/nodes" -n "$node"
}

# 220 ms of OpenSSH's first choice of key exchange are not what the lab is about.
node_ssh() {
  local node=$1
  shift
  ssh -i "$STATE/id" -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
    -o LogLevel=ERROR -o ConnectTimeout=2 -o KexAlgorithms=curve25519-sha256 "root@$(node_address "$node")" "$@"
}

node_answers() { node_ssh "$1" -o BatchMode=yes true; }

# With CORPUS_LAB_DISK each node's disk is in memory, and so large.
disks_up() {
  local node disk
  [ -n "${CORPUS_LAB_DISK:-}" ] || return 0
  for node in "${NODES[@]}"; do
    disk=$STATE/nodes/$node
    mkdir -p "$disk"
    mountpoint -q "$disk" || mount -t tmpfs -o "size=$CORPUS_LAB_DISK,mode=755" corpus-lab "$disk"
  done
}

disks_down() {
  local node disk
  for node in "${NODES[@]}"; do
    disk=$STATE/nodes/$node
    ! mountpoint -q "$disk" || umount "$disk" || umount -l "$disk"
  done
}

nodes_up() {
  local node
  disks_up
  [ -f "$STATE/id" ] || ssh-keygen -q -t ed25519 -N '' -C lab -f "$STATE/id"
  bridge_up
  # Nodes may not load modules; where these are built in, there are none.
  modprobe -qa loop btrfs 2>/dev/null || true
  for node in "${NODES[@]}"; do node_start "$node"; done
  for node in "${NODES[@]}"; do wait_for 30 "ssh on $node" node_answers "$node"; done
}

# nodes_down LXC-STOP-OPTION…
nodes_down() {
  local node
  for node in "${NODES[@]}"; do
    ! node_running "$node" || lxc-stop -P "$STATE/nodes" -n "$node" "$@" &
  done
  wait
  # LXC leaves an empty group behind in each hierarchy; one in use refuses to go.
  rmdir /sys/fs/cgroup/*/lxc.pivot 2>/dev/null || true
  ! ip link show "$BRIDGE" >/dev/null 2>&1 || ip link delete "$BRIDGE"
}

# A cut node is a black hole: no refusal and no "unreachable", only silence.
node_cut() { ip link set "$(node_veth "$1")" nomaster; }
node_heal() { ip link set "$(node_veth "$1")" master "$BRIDGE"; }

node_boot_id() { node_ssh "$1" -o BatchMode=yes cat /proc/1/stat | cut -d' ' -f22; }

node_rebooted() {
  local started
  started=$(node_boot_id "$1") && [ -n "$started" ] && [ "$started" != "$2" ]
}

node_reboot() {
  local before
  before=$(node_boot_id "$1")
  node_ssh "$1" systemctl reboot || true
  wait_for 60 "the reboot of $1" node_rebooted "$1" "$before"
}
