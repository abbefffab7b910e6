# shellcheck shell=bash
# The server that `make up` runs: its folder, its configuration, its start and stop.
# Source lib.sh first.

HOME_FOLDER=$ROOT/.corpus
SERVER=$ROOT/target/corpus/corpus-server
CONFIG=$HOME_FOLDER/corpus.toml
LOG=$HOME_FOLDER/corpus.log
PID=$HOME_FOLDER/corpus.pid
GENERATED='# Written by `make up`, again each time. To keep changes of yours, remove this line.'

listen_address() { printf '%s' "${CORPUS_LISTEN:-127.0.0.1:8080}"; }
# Where members push to: port 2222, or for a server on another port than 8080 one of its own.
git_listen_address() {
  local web port
  web=$(listen_address)
  port=${web##*:}
  if ((port == 8080)); then port=2222; elif ((port <= 55535)); then port=$((port + 10000)); else port=$((port - 10000)); fi
  printf '%s:%s' "${web%:*}" "$port"
}
server_url() { printf 'http://%s' "$(listen_address)"; }
server_running() { alive "$PID" "$SERVER"; }
server_ready() { curl -sf --noproxy '*' -m 2 "$(server_url)/readyz"; }

# As root the server runs its PostgreSQL as another user, who must be able to
# reach the data; a checkout below /root is closed to everybody else.
data_folder() {
  if is_root && ! setpriv --reuid=nobody --regid=nogroup --clear-groups test -x "$HOME_FOLDER"; then
    printf '/var/lib/corpus-up/%s' "$(hash_of - <<<"$ROOT")"
  else
    printf '%s/data' "$HOME_FOLDER"
  fi
}

config_base() {
  cat <<TOML
$GENERATED
listen = "$(listen_address)"
public_url = "$(server_url)"
site_folder = "$ROOT/target/corpus/site"
agent_binary = "$ROOT/target/corpus/agent/corpus-agent-$(uname -m)"
image_folder = "$CACHE/images"
guest_backups = "$HOME_FOLDER/guest-backups"
salt_bundle = "$("$ROOT/scripts/salt-bundle")"
data_folder = "$(data_folder)"
seal_key_file = "$HOME_FOLDER/seal.key"

[log]
format = "pretty"

[git]
listen = "$(git_listen_address)"
TOML
}

config_lab() {
  cat <<TOML

[ldap]
url = "$CORPUS_LAB_LDAPS_URL"
ca_file = "$CORPUS_LAB_LDAP_CA"
bind_dn = "$CORPUS_LAB_LDAP_BIND_DN"
bind_password = "$CORPUS_LAB_LDAP_BIND_PASSWORD"
people_base = "$CORPUS_LAB_LDAP_PEOPLE_BASE"
people_filter = "$CORPUS_LAB_LDAP_USER_FILTER"
disabled_filter = "$CORPUS_LAB_LDAP_DISABLED_FILTER"
groups_base = "$CORPUS_LAB_LDAP_GROUP_BASE"
groups_filter = "$CORPUS_LAB_LDAP_GROUP_FILTER"
ops_group = "corpus-ops"
project_group_pattern = "project-{project}-{role}s"

[dns]
api_url = "$CORPUS_LAB_DNS_API"
api_key = "$CORPUS_LAB_DNS_API_KEY"
server = "$CORPUS_LAB_DNS"
resolver_server = "$CORPUS_LAB_DNS_OF_NODES"
nameservers = ["ns1.$CORPUS_LAB_DNS_ZONE"]
server_id = "localhost"

[mail]
relay = "smtp://$CORPUS_LAB_SMTP"
from = "corpus@$CORPUS_LAB_DNS_ZONE"
TOML
}

# config_write LAB: only where no hand-made file stands.
config_write() {
  mkdir -p "$HOME_FOLDER"
  if [ -f "$CONFIG" ] && [ "$(head -n 1 "$CONFIG")" != "$GENERATED" ]; then return 0; fi
  { config_base; [ -z "$1" ] || config_lab; } | put "$CONFIG" 600
}

# What a running server was started from.
server_inputs() { hash_of "$CONFIG" "$ROOT/target/corpus/site/hash.txt" - <<<"$(stat -L -c '%i %Y %s' "$SERVER")"; }

# The server takes CORPUS_… variables for settings and refuses those it does
# not know: what steers the scripts must not reach it.
unset_script_variables() {
  local name
  for name in $(compgen -e CORPUS_); do
    case $name in
      CORPUS_CACHE | CORPUS_FAIL_LINES | CORPUS_LAB | CORPUS_LAB_* | CORPUS_SAMPLE | CORPUS_MIRROR | CORPUS_STEP_LOGS | CORPUS_WASM) unset "$name" ;;
    esac
  done
}

server_start() {
  mkdir -p "$HOME_FOLDER"
  # The log of the first start holds a password.
  [ -f "$LOG" ] || put "$LOG" 600 </dev/null
  (
    unset_script_variables
    exec setsid "$SERVER" --config "$CONFIG" >>"$LOG" 2>&1 </dev/null
  ) &
  printf '%s\n' "$!" >"$PID"
  server_inputs >"$HOME_FOLDER/started-from"
  if ! wait_for_server 60; then
    tail -n 40 "$LOG" >&2
    die "the server did not become ready; its log: $LOG"
  fi
}

# Ready, or gone: who waits for a dead process waits in vain.
wait_for_server() {
  local tries=$(($1 * 20))
  while [ "$tries" -gt 0 ] && server_running; do
    ! server_ready >/dev/null 2>&1 || return 0
    sleep 0.05
    tries=$((tries - 1))
  done
  return 1
}

server_stop() {
  stop_recorded "$PID" "$SERVER" 30
  rm -f "$HOME_FOLDER/started-from"
  # Its own PostgreSQL ends with it, unless it was killed.
  local left
  left=$(data_folder)/postgres/data/postmaster.pid
  [ ! -f "$left" ] || postgres_stop "$left"
}

# postgres_stop POSTMASTER-PID-FILE: its first line is the pid, its second the folder.
postgres_stop() {
  local pid folder
  { read -r pid && read -r folder; } <"$1"
  if [ -r "/proc/$pid/cmdline" ] && tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qF "$folder"; then
    kill -INT "$pid"
    wait_for 20 "PostgreSQL to end" test ! -d "/proc/$pid"
  fi
}

# server_current: it runs, and from what is there now.
server_current() {
  server_running && [ "$(cat "$HOME_FOLDER/started-from" 2>/dev/null)" = "$(server_inputs)" ] && server_ready >/dev/null 2>&1
}

server_restart() {
  ! server_running || server_stop
  server_start
}
