# Runs one throw-away pgbouncer that gives every transaction another connection. The end of stdin,
# which comes however the asking process ends, stops it and removes its folder.
#
# $1: port; $2: host and $3: port of the PostgreSQL server.

folder=$(mktemp -d "${TMPDIR:-/tmp}/kefu-pgbouncer.XXXXXX") || exit 1
cat >"$folder/pgbouncer.ini" <<SETTINGS
[databases]
* = host=$2 port=$3 user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $1
unix_socket_dir =
auth_type = any
auth_file =
pool_mode = transaction
default_pool_size = 8
max_client_conn = 500
server_round_robin = 1
SETTINGS
pgbouncer "$folder/pgbouncer.ini" 2>&1 &
cat >/dev/null
kill -INT $!
wait
rm -rf "$folder"
