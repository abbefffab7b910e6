#!/bin/sh
# Speaks the protocol of corpus-agent for tests. What it is asked to run tells how it behaves;
# which requests were cancelled it notes in the folder of the test.
result() { printf '{"type":"result","id":%s,"result":%s}\n' "$1" "$2"; }
done='{"Ok":{"type":"done","changed":true}}'
reading='{"Ok":{"type":"reading","load":0.5,"uptime_s":60,"memory_total":1000,"memory_used":500,"storage":{"total":1000,"used":1},"guests":[]}}'
root=true
[ "$(id -u)" = 0 ] || root=false
printf '{"type":"hello","version":@VERSION@,"root":%s}\n' "$root"
while IFS= read -r line; do
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    '{"type":"cancel"'*)
      : >"@DIR@/cancelled.$id"
      result "$id" '{"Err":{"kind":"cancelled","message":"cancelled"}}' ;;
    *'"type":"read"'*) result "$id" "$reading" ;;
    *'"slow.test"'*) (sleep 0.3; result "$id" "$done") & ;;
    *'"hang.test"'*) : >'@DIR@/hangs' ;;
    *'"rubbish.test"'*) echo 'Welcome to this host!' ;;
    *'"die.test"'*) echo 'out of memory' >&2; exit 3 ;;
    *'"endless.test"'*) head -c 5000000 /dev/zero | tr '\0' x ;;
    *'"noisy.test"'*)
      for n in 1 2 3; do
        printf '{"type":"event","id":%s,"event":{"type":"log","stream":"out","text":"line %s"}}\n' "$id" "$n"
      done
      result "$id" "$done" ;;
    *'"flood.test"'*)
      text=$(head -c 60000 /dev/zero | tr '\0' x)
      (n=0; while [ -e "@DIR@" ] && printf '{"type":"event","id":%s,"event":{"type":"log","stream":"out","text":"%s %s"}}\n' "$id" "$n" "$text"; do
        n=$((n + 1)); echo "$n" >"@DIR@/flooded"
      done) & ;;
    *'"liar.test"'*) result 999 "$done" ;;
    *'"busy.test"'*) result "$id" '{"Err":{"kind":"busy","message":"another request holds the lock"}}' ;;
    *) result "$id" "$done" ;;
  esac
done
