#!/bin/sh
# Stands before the plugin under test, and records the environment, the input and the exit code of each run.
call=/opt/calls/$(date +%s%N)
env > "$call.env"
cat > "$call.in"
/opt/real/ipam-cni < "$call.in"
code=$?
echo "$code" > "$call.code"
exit "$code"
