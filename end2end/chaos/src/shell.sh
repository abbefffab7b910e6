#!/bin/bash
# The login shell of a node's accounts during the matrix. sshd runs every command line by it;
# when /run/chaos/shell names one (WHAT MOMENT LATE_S PATTERN), that one is broken once.
rule=/run/chaos/shell
if [ "$1" = -c ] && [ -f "$rule" ]; then
  read -r what moment late pattern <"$rule"
  if [[ $2 == *"$pattern"* ]] && mv "$rule" /run/chaos/fired 2>/dev/null; then
    case $what-$moment in
      fail-before) echo "failed, on order" >&2; exit 1 ;;
      fail-during) timeout -s KILL 0.002 /bin/bash -c "$2"; exit 137 ;;
      fail-after) /bin/bash -c "$2"; exit 1 ;;
      hang-before) exec sleep 45 ;;
      hang-during) /bin/bash -c "$2" & kill -STOP $!; sleep 45; kill -KILL $!; exit 1 ;;
      hang-after) /bin/bash -c "$2"; exec sleep 45 ;;
      rubbish-before) head -c 300 /dev/urandom; exit 0 ;;
      rubbish-during) timeout -s KILL 0.002 /bin/bash -c "$2" >/dev/null; head -c 300 /dev/urandom; exit 0 ;;
      rubbish-after) /bin/bash -c "$2" >/dev/null; head -c 300 /dev/urandom; exit 0 ;;
      late-before) sleep "$late" ;;
      late-during) /bin/bash -c "$2" & kill -STOP $!; sleep "$late"; kill -CONT $!; wait $!; exit ;;
      late-after) out=$(/bin/bash -c "$2"); code=$?; sleep "$late"; printf '%s\n' "$out"; exit $code ;;
    esac
  fi
fi
exec /bin/bash "$@"
