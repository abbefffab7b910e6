# shellcheck shell=bash
# What surrounds the nodes: a directory, a DNS server, a mail sink. Each is one
# process on loopback, with its files and its recorded pid in its own folder.

# service_start NAME COMMAND…: run it as nobody, detached, unless it already runs.
service_start() {
  local name=$1
  shift
  ! service_running "$name" || return 0
  chown -R nobody:nogroup "$STATE/$name"
  setsid setpriv --reuid=nobody --regid=nogroup --clear-groups -- "$@" \
    >"$STATE/$name/log" 2>&1 </dev/null &
  printf '%s\n' "$!" >"$STATE/run/$name.pid"
}
service_running() { alive "$STATE/run/$1.pid" "$STATE/$1/"; }
service_stop() { stop_recorded "$STATE/run/$1.pid" "$STATE/$1/"; }

# --- directory ---------------------------------------------------------------

BASE_DN=dc=corpus,dc=test
PEOPLE=(alice bob carol dave erin twin1 twin2)

ldap_port() { port 13389; }
ldaps_port() { port 13636; }
ldap_url() { printf 'ldap://127.0.0.1:%s' "$(ldap_port)"; }

# A small authority of the lab's own, and a certificate for every name the server is called by.
ldap_certificate() {
  local folder=$1 names
  names="IP:127.0.0.1,DNS:localhost,DNS:$(hostname)"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \
    -subj '/O=Corpus lab/CN=Corpus lab authority' -addext keyUsage=critical,keyCertSign,cRLSign \
    -keyout "$folder/ca.key" -out "$folder/ca.pem" 2>"$folder/openssl.log"
  openssl req -x509 -CA "$folder/ca.pem" -CAkey "$folder/ca.key" -newkey ec \
    -pkeyopt ec_paramgen_curve:P-256 -nodes -days 825 -subj '/O=Corpus lab/CN=localhost' \
    -addext "subjectAltName=$names" -addext basicConstraints=critical,CA:FALSE \
    -addext keyUsage=critical,digitalSignature -addext extendedKeyUsage=serverAuth \
    -keyout "$folder/server.key" -out "$folder/server.pem" 2>>"$folder/openssl.log"
}

ldap_config() {
  cat <<CONFIG
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
moduleload refint
moduleload ppolicy
pidfile $1/slapd.pid
argsfile $1/slapd.args
TLSCertificateFile $1/server.pem
TLSCertificateKeyFile $1/server.key
TLSVerifyClient never
database mdb
maxsize 104857600
suffix "$BASE_DN"
rootdn "cn=admin,$BASE_DN"
rootpw $PASSWORD
directory $1/db
index objectClass,uid,mail,cn,member,memberOf eq
overlay memberof
memberof-group-oc groupOfNames
memberof-refint true
overlay refint
refint_attributes member memberOf
overlay ppolicy
ppolicy_default "cn=default,ou=policies,$BASE_DN"
access to attrs=userPassword by self write by anonymous auth by * none
access to * by users read by anonymous auth
CONFIG
}

# ldap_person UID GIVEN-NAME SURNAME [MAIL]
ldap_person() {
  cat <<LDIF
dn: uid=$1,ou=people,$BASE_DN
objectClass: inetOrgPerson
uid: $1
cn: $2 $3
givenName: $2
sn: $3
mail: ${4:-$1@example.org}
userPassword: $PASSWORD

LDIF
}

# ldap_group NAME MEMBER-DN
ldap_group() {
  printf 'dn: cn=%s,ou=groups,%s\nobjectClass: groupOfNames\ncn: %s\nmember: %s\n\n' "$1" "$BASE_DN" "$1" "$2"
}

ldap_tree() {
  local unit person="ou=people,$BASE_DN"
  printf 'dn: %s\nobjectClass: dcObject\nobjectClass: organization\ndc: corpus\no: Corpus lab\n\n' "$BASE_DN"
  for unit in people groups services policies; do
    printf 'dn: ou=%s,%s\nobjectClass: organizationalUnit\nou: %s\n\n' "$unit" "$BASE_DN" "$unit"
  done
  # pwdLockout makes slapd itself refuse an account that carries pwdAccountLockedTime.
  printf 'dn: cn=default,ou=policies,%s\nobjectClass: person\nobjectClass: pwdPolicy\ncn: default\nsn: default\npwdAttribute: userPassword\npwdLockout: TRUE\n\n' "$BASE_DN"
  printf 'dn: cn=corpus,ou=services,%s\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\ncn: corpus\nuserPassword: %s\n\n' "$BASE_DN" "$PASSWORD"
  ldap_person alice Alice Archer
  ldap_person bob Bob Baker
  ldap_person carol Carol Carver
  ldap_person dave Dave Dyer
  ldap_person erin Erin Easton
  # A filter that also takes mail addresses finds two people here.
  ldap_person twin1 Tom Twin twin@example.org
  ldap_person twin2 Tim Twin twin@example.org
  ldap_group corpus-ops "uid=alice,$person"
  ldap_group project-atlas-maintainers "uid=bob,$person"
  ldap_group project-atlas-developers "uid=carol,$person"
  # groupOfNames wants one member at least; erin is one whom no rule lets in.
  ldap_group project-atlas-viewers "uid=erin,$person"
  ldap_group project-borealis-developers "uid=dave,$person"
}

ldap_admin() { "$1" -o nettimeout=2 -x -H "$(ldap_url)" -D "cn=admin,$BASE_DN" -w "$PASSWORD" "${@:2}" 2>&1; }

ldap_answers() { ldapwhoami -o nettimeout=1 -x -H "$(ldap_url)"; }

ldap_fill() {
  # Not slapadd: it would bypass the memberOf overlay.
  ldap_tree | ldap_admin ldapadd
  printf 'dn: uid=erin,ou=people,%s\nchangetype: modify\nadd: pwdAccountLockedTime\npwdAccountLockedTime: 000001010000Z\n' "$BASE_DN" \
    | ldap_admin ldapmodify -e relax
}

ldap_up() {
  local folder=$STATE/ldap fresh=
  if [ ! -f "$folder/filled" ]; then
    fresh=1
    ! service_running ldap || service_stop ldap
    rm -rf "$folder"
    mkdir -p "$folder/db"
    ldap_certificate "$folder"
    # A profile of AppArmor for /usr/sbin/slapd, where there is one, forbids these folders.
    cp /usr/sbin/slapd "$folder/slapd"
    ldap_config "$folder" >"$folder/slapd.conf"
  fi
  service_start ldap "$folder/slapd" -f "$folder/slapd.conf" -d 0 \
    -h "$(ldap_url) ldaps://127.0.0.1:$(ldaps_port)"
  wait_for 30 slapd ldap_answers
  [ -z "$fresh" ] || { ldap_fill >"$folder/fill.log" && touch "$folder/filled"; }
}

# --- DNS ---------------------------------------------------------------------

DNS_KEY=corpus-lab-key
dns_port() { port 15353; }
dns_api_port() { port 18081; }
dns_api_url() { printf 'http://127.0.0.1:%s' "$(dns_api_port)"; }

# Nodes ask it for the names that their guests resolve.
dns_config() {
  # security-poll-suffix: it must not ask the Internet whether it is outdated.
  # The caches are off, so that a change is visible at once.
  cat <<CONFIG
launch=gsqlite3
gsqlite3-database=$1/pdns.sqlite3
local-address=127.0.0.1,$NET.1
local-port=$(dns_port)
socket-dir=$1
api=yes
api-key=$DNS_KEY
webserver=yes
webserver-address=127.0.0.1
webserver-port=$(dns_api_port)
webserver-allow-from=127.0.0.1
daemon=no
guardian=no
disable-syslog=yes
write-pid=no
loglevel=4
default-ttl=60
security-poll-suffix=
cache-ttl=0
query-cache-ttl=0
negquery-cache-ttl=0
CONFIG
}

dns_answers() { curl -sf --noproxy '*' -m 2 -H "X-API-Key: $DNS_KEY" "$(dns_api_url)/api/v1/servers/localhost"; }

dns_up() {
  local folder=$STATE/dns
  if [ ! -f "$folder/pdns.sqlite3" ]; then
    mkdir -p "$folder"
    sqlite3 "$folder/pdns.new" </usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql
    mv "$folder/pdns.new" "$folder/pdns.sqlite3"
  fi
  dns_config "$folder" >"$folder/pdns.conf"
  service_start dns pdns_server "--config-dir=$folder/"
  wait_for 30 PowerDNS dns_answers
}

# --- mail --------------------------------------------------------------------

smtp_port() { port 10025; }
mail_answers() { (exec 3<>"/dev/tcp/127.0.0.1/$(smtp_port)") 2>/dev/null; }

mail_up() {
  local folder=$STATE/mail
  mkdir -p "$folder"
  # The script is copied, since nobody may not be able to reach the checkout.
  cp "$LAB/smtp_sink.py" "$folder/smtp_sink.py"
  service_start mail /usr/bin/python3 -W ignore "$folder/smtp_sink.py" "$(smtp_port)" "$folder/mail.jsonl"
  wait_for 30 "the mail sink" mail_answers
}
