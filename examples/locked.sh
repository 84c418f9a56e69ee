#!/bin/sh
# A program with its own lock: a file with the pid of the process that works. A second one exits with 1.
#   pinfold new job --contended-if 'session lock busy' -- examples/locked.sh
holder=$(cat .lock 2>/dev/null)
if [ -n "$holder" ] && kill -0 "$holder" 2>/dev/null; then
    echo "session lock busy (pid $holder)" >&2
    exit 1
fi
echo $$ >.lock
echo working
exec sleep 1000
