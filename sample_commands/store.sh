# Sourced by the samples: a store of one's own in a directory that goes away, and a way to show what is run.
set -eu

place=$(mktemp -d)
NEREUS_STORE="$place/store"
export NEREUS_STORE
trap 'rm -rf "$place"' EXIT
trap 'exit 130' INT TERM

# Shows a line as it would be typed, runs exactly that, and says how it ended when that was not 0.
try() {
    printf '\n$ %s\n' "$1"
    status=0
    eval "$1" || status=$?
    [ "$status" -eq 0 ] || printf '(exit status %s)\n' "$status"
}
