#!/bin/sh
# Stands before a CNI plugin of the same name: stops a run at the moment that a test has ordered, by a file,
# and lets it go on when the test removes the file.
orders=/opt/orders
name=${0##*/}
real=/opt/real/$name
echo "$name $CNI_COMMAND $CNI_CONTAINERID $CNI_NETNS" >> /opt/plugins.log

stop_at() {
    mv "$orders/$name-$CNI_COMMAND-$1" "$orders/reached" 2>/dev/null || return 0
    while [ -e "$orders/reached" ]; do sleep 0.01; done
}

stop_at before
# The process stays the same, and with it the start that the plugin reports.
[ -e "$orders/$name-$CNI_COMMAND-after" ] || exec "$real"
answer=$("$real")
code=$?
stop_at after
printf '%s\n' "$answer"
exit "$code"
