# shellcheck shell=bash
# What all scripts share: where things are, how they report, how they run a step.
#
# A script that works says little: one line per long step, with its time. The
# full output of a step goes to a file and is shown only when the step fails.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Everything here can be deleted at any time: it is only ever a faster way to the same result.
CACHE=${CORPUS_CACHE:-$HOME/.cache/corpus}
STEP_LOGS=${CORPUS_STEP_LOGS:-$ROOT/target/corpus/log}

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
is_root() { [ "$(id -u)" = 0 ]; }
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f s", b - a }'; }

done_line() { printf '✓ %-44s %8s\n' "$1" "$(since "$2")" >&2; }

# hash_of FILE… [< text]: a short name for a content; "-" reads standard input.
hash_of() { cat -- "$@" | sha256sum | cut -c1-16; }

step_log() { printf '%s/%s.log' "$STEP_LOGS" "$(tr -cs 'a-zA-Z0-9' '-' <<<"$1" | sed 's/-*$//')"; }

# step TITLE COMMAND…: run it, print one line with its time, show its output only if it fails.
# Not to be called under `if`, `!` or left of `||`: bash then ignores errors inside functions.
# Where a failure must be survived: `step … & wait "$!" || …`.
step() {
  local title=$1 log started code=0
  shift
  mkdir -p "$STEP_LOGS"
  log=$(step_log "$title")
  started=$(now)
  [ ! -t 2 ] || printf '· %s …\r' "$title" >&2
  set +e
  (set -e; "$@") >"$log" 2>&1 </dev/null
  code=$?
  set -e
  if [ "$code" = 0 ]; then
    done_line "$title" "$started"
  else
    printf '✗ %-44s %8s  exit %s\n' "$title" "$(since "$started")" "$code" >&2
    tail -n "${CORPUS_FAIL_LINES:-60}" "$log" >&2
    say "the whole output: $log"
    return "$code"
  fi
}

# put FILE: replace FILE by standard input in one move, so that nobody reads half of it.
put() {
  local new
  mkdir -p "$(dirname "$1")"
  new=$(mktemp "$1.XXXXXX")
  cat >"$new"
  chmod "${2:-644}" "$new"
  mv "$new" "$1"
}

# alive PIDFILE WORD: the recorded process runs, and is still the one that was
# recorded (a number alone may by now belong to a stranger).
alive() {
  local pid
  [ -s "$1" ] && pid=$(<"$1") && [ -r "/proc/$pid/cmdline" ] \
    && tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qF -- "$2"
}

# stop_recorded PIDFILE WORD [SECONDS]: ask the recorded process to end, then insist.
stop_recorded() {
  local pid tries=$((${3:-10} * 20))
  if alive "$1" "$2"; then
    pid=$(<"$1")
    kill "$pid" 2>/dev/null || true
    while [ "$tries" -gt 0 ] && alive "$1" "$2"; do sleep 0.05; tries=$((tries - 1)); done
    ! alive "$1" "$2" || kill -9 "$pid" 2>/dev/null || true
  fi
  rm -f "$1"
}

# wait_for SECONDS WHAT COMMAND…: poll until the command succeeds.
wait_for() {
  local tries=$(($1 * 20)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { say "gave up waiting for $what"; return 1; }
    sleep 0.05
  done
}

# npm_install FOLDER: what its lock file says, only when that has changed.
npm_install() {
  local stamp=$1/node_modules/.corpus-lock wanted
  wanted=$(hash_of "$1/package-lock.json")
  [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] || {
    step "install npm packages of ${1#"$ROOT"/}" npm --prefix "$1" ci --no-audit --no-fund --loglevel=error
    printf '%s\n' "$wanted" >"$stamp"
  }
}
