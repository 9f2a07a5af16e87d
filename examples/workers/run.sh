#!/bin/sh
# Start four workers, kill one of them, and look at what they did together.
set -eu
cd "$(dirname "$0")"
for i in 1 2 3 4; do
    glasses worker study.toml > "worker-$i.log" 2>&1 &
    last=$!
done
sleep 6
kill -9 "$last" || true     # nothing is lost: its evaluation is done again by another worker
wait
glasses show study.toml
