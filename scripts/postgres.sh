# shellcheck shell=bash
# A private PostgreSQL for tests and for checking queries: nothing is durable,
# which makes it fast, and it is gone afterwards. Source lib.sh first.

# PG_CONF: more lines for postgresql.conf.

# Not below the checkout: the user that runs it may not be able to reach that.
PG_FOLDER=/var/tmp/corpus-postgres-$$
PG_USER=()

pg_tool() { printf '%s' "$(compgen -G '/usr/lib/postgresql/*/bin' | sort -V | tail -n 1)/$1"; }

free_port() {
  local port
  for port in $(shuf -i 54400-55999 -n 20); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { printf '%s' "$port"; return; }
  done
  return 1
}

pg_make() {
  "${PG_USER[@]}" "$(pg_tool initdb)" -D "$PG_FOLDER/data" -U corpus -A trust -E UTF8 --locale=C.UTF-8 --no-sync
  cat >>"$PG_FOLDER/data/postgresql.conf" <<CONF
listen_addresses = '127.0.0.1'
port = $1
unix_socket_directories = '$PG_FOLDER'
max_connections = 300
fsync = off
synchronous_commit = off
full_page_writes = off
${PG_CONF:-}
CONF
  # pg_ctl would keep our output open; the postmaster in a session of its own does not.
  setsid "${PG_USER[@]}" "$(pg_tool postgres)" -D "$PG_FOLDER/data" >"$PG_FOLDER/log" 2>&1 </dev/null &
  printf '%s\n' "$!" >"$PG_FOLDER/pid"
  wait_for 20 PostgreSQL "$(pg_tool pg_isready)" -h "$PG_FOLDER" -p "$1"
  "$(pg_tool createdb)" -h "$PG_FOLDER" -p "$1" -U corpus corpus
}

# pg_start: sets DATABASE_URL.
pg_start() {
  local port
  port=$(free_port)
  install -d -m 755 "$PG_FOLDER"
  if is_root; then
    PG_USER=(setpriv --reuid=nobody --regid=nogroup --clear-groups --)
    chown nobody:nogroup "$PG_FOLDER"
  fi
  step "start a PostgreSQL for the tests" pg_make "$port"
  export DATABASE_URL="postgres://corpus@127.0.0.1:$port/corpus"
}

# pg_stop [keep]: after a failed test its databases are worth keeping.
pg_stop() {
  [ -d "$PG_FOLDER" ] || return 0
  # INT is "fast": open connections are cut.
  ! alive "$PG_FOLDER/pid" "$PG_FOLDER" || kill -INT "$(<"$PG_FOLDER/pid")"
  wait_for 20 "PostgreSQL to end" pg_gone || true
  if [ "${1:-}" = keep ]; then say "the databases of the tests are kept in $PG_FOLDER"; else rm -rf "$PG_FOLDER"; fi
}
pg_gone() { ! alive "$PG_FOLDER/pid" "$PG_FOLDER"; }
