#!/bin/sh
# The main job, once through: a fresh store, a real daemon; one message is delivered, one cancelled, one rescheduled,
# one repeated. Needs `nereus` on PATH and leaves nothing behind.
set -eu

place=$(mktemp -d)
NEREUS_STORE="$place/store"
export NEREUS_STORE
daemon=
clean() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || :
    [ -z "$daemon" ] || wait "$daemon" 2>/dev/null || :
    rm -rf "$place"
}
trap clean EXIT
trap 'exit 130' INT TERM

# Shows a line as it would be typed, then runs exactly that.
try() {
    printf '\n$ %s\n' "$1"
    eval "$1"
}

nereus init
nereus run 2>"$place/daemon.log" &
daemon=$!
until nereus status | grep -q 'daemon *alive'; do sleep 0.1; done

echo
echo 'Three messages; one is cancelled, one is rescheduled:'
try "nereus schedule --id hello --in 1s -- sh -c 'echo hello from attempt \$NEREUS_ATTEMPT'"
try 'nereus schedule --id never --in 1h -- echo never'
try 'nereus schedule --id sooner --in 1h -- echo sooner'
try 'nereus cancel never'
try 'nereus reschedule sooner --in 1s'
try 'nereus wait hello sooner --timeout 20s'

echo
echo 'The same line again is the same command, not a second delivery:'
try "nereus schedule --id hello --in 1s -- sh -c 'echo hello from attempt \$NEREUS_ATTEMPT'"

echo
echo 'And what happened:'
try 'nereus logs hello'
try 'nereus list --state PUBLISHED --state CANCELED'
try 'nereus status'
