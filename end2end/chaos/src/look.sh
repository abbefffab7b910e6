# What of Corpus is on this node; a word and a value a line. Run in the node, as root.
list() { ls -A "$2" 2>/dev/null | while read -r one; do echo "$1 $one"; done; }
list guest /var/lib/lxc
for disk in /var/lib/lxc/*/rootfs.img; do
  [ -e "$disk" ] && echo "disk $(basename "$(dirname "$disk")") $(stat -c %s "$disk")"
done
for guest in /var/lib/lxc/*; do
  list "snapshot $(basename "$guest")" "$guest/snapshots"
  for kept in former next; do [ -e "$guest/$kept" ] && echo "kept $guest/$kept"; done
done
# By its name, without the hash of the archive; a superseded one of the job that removes these is told apart.
list image /var/lib/corpus/images | sed -E '/-0{12}$/! s/-[0-9a-f]{12}$//'
# Those that are served: one that was brought may wait for its plan.
for file in /etc/corpus/certificates/*.pem; do
  grep -qF "$file" /etc/corpus/certificates.list 2>/dev/null && echo "certificate $(basename "$file" .pem) $(sha256sum <"$file" | cut -d' ' -f1)"
done
# Salt stays where it was brought, as long as the node is in service.
list upload /var/lib/corpus/upload | grep -v -x 'upload salt.tar.gz'
[ -d /etc/corpus ] || [ ! -e /opt/corpus/salt ] || echo "salt /opt/corpus/salt"
list agent /var/lib/corpus/agent
for container in $(lxc-ls -1 2>/dev/null); do echo "$(lxc-info -n "$container" -sH | tr A-Z a-z) $container"; done
for unit in network firewall proxy resolver traffic; do
  [ -e /etc/systemd/system/corpus-$unit.service ] && echo "unit $unit"
  [ "$(systemctl is-active corpus-$unit 2>/dev/null)" = active ] && echo "active $unit"
done
[ -d /etc/corpus ] && echo "configuration /etc/corpus"
[ -e /var/lib/corpus-traffic ] && echo "counts /var/lib/corpus-traffic"
[ -e /var/lib/haproxy/corpus ] && echo "socket /var/lib/haproxy/corpus"
[ -d /sys/class/net/lxcbr1 ] && echo "bridge lxcbr1"
nft list tables 2>/dev/null | sed -n 's/^table \(.*\) corpus$/table \1/p'
grep -h ' corpus@' /root/.ssh/authorized_keys 2>/dev/null | sed 's/.* corpus@.*/key control/'
for map in /etc/corpus/*.map; do
  [ -e "$map" ] && echo "show map $map" | socat -t 2 - UNIX-CONNECT:/run/corpus-proxy/admin.sock 2>/dev/null | sed -n 's/^0x[0-9a-f]* /route /p'
done
for file in /etc/unbound/corpus.conf /etc/sysctl.d/60-corpus-ports.conf; do
  [ -e "$file" ] && echo "configuration $file"
done
nft list set bridge corpus ports 2>/dev/null | grep -o '"cg[0-9a-f]*" [^,}]*' | sed 's/ *$//;s/^/port /'
ip -4 neigh show nud permanent 2>/dev/null | sed -n 's/^\([0-9.]*\) .* lladdr \([0-9a-f:]*\) .*/neighbour \1 \2/p'
ls /sys/class/net | grep -v -x -e lo -e eth0 -e lxcbr1 | sed 's/^/interface /'
find /sys/fs/cgroup -maxdepth 4 -type d -path '*/corpus/*/payload' 2>/dev/null | sed 's|.*/corpus/\(.*\)/payload$|cgroup \1|' | sort -u
grep -o ' /var/lib/lxc/[^ ]*' /proc/mounts | sed 's/^ /mount /'
for process in /proc/[0-9]*; do
  case $(tr '\0' ' ' <"$process/cmdline" 2>/dev/null) in
    tar\ * | cp\ * | debootstrap* | apt-get* | dpkg* | lxc-start* | lxc-stop* | zstd*)
      # A container's own process is its monitor's child, renamed; the tools of the host are not.
      [ "$(readlink "$process/ns/pid")" = "$(readlink /proc/self/ns/pid)" ] && tr '\0' ' ' <"$process/cmdline" | sed 's/^/process /;s/$/\n/' ;;
  esac
done
true
