# Runs one throw-away PostgreSQL. Orders come one a line on stdin, "done" answers each on stdout. The
# end of stdin, which comes however the asking process ends, stops the server and removes its folder.
#
# $1: port; $2: folder of the PostgreSQL binaries.

port=$1
bin=$2
folder=$(mktemp -d "${TMPDIR:-/tmp}/kefu-postgres.XXXXXX") || exit 1

start() {
    "$bin/pg_ctl" -D "$folder/data" -l "$folder/log" -w -t 30 start >/dev/null
}

# $1: fast (orderly) or immediate (as a crash).
stop() {
    "$bin/pg_ctl" -D "$folder/data" -m "$1" -w -t 30 stop >/dev/null
}

# $1: STOP or CONT, sent to the server and every process of it.
signal() {
    main=$(head -n 1 "$folder/data/postmaster.pid")
    kill -s "$1" "$main" $(ps -o pid= --ppid "$main")
}

finish() {
    signal CONT 2>/dev/null
    stop immediate 2>/dev/null
    rm -rf "$folder"
}

"$bin/initdb" -D "$folder/data" -U postgres --auth=trust --no-locale -E UTF8 --no-sync \
    >/dev/null || { rm -rf "$folder"; exit 1; }
cat >>"$folder/data/postgresql.conf" <<SETTINGS
port = $port
listen_addresses = '127.0.0.1'
unix_socket_directories = '$folder'
max_connections = 400
shared_buffers = 64MB
max_wal_size = 2GB
fsync = on
synchronous_commit = on
SETTINGS
if ! start; then
    cat "$folder/log" >&2
    rm -rf "$folder"
    exit 1
fi
echo "$folder"
# Whoever reads the errors of the tests is not kept waiting by the cleaning up.
exec 2>/dev/null

while read -r order; do
    case $order in
        start) start ;;
        stop) stop fast ;;
        crash) stop immediate ;;
        freeze) signal STOP ;;
        thaw) signal CONT ;;
    esac
    echo "done"
done
finish
