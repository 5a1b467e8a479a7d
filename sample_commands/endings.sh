#!/bin/sh
# How commands end, and what is claimed of each. The last one was killed: what it had done, nobody can know.
. "$(dirname "$0")/store.sh"

try 'nereus schedule --id well --in 0s -- true'
try 'nereus schedule --id refused --in 0s -- sh -c "exit 64"'
try 'nereus schedule --id missing --in 0s -- /no/such/command'
try 'nereus schedule --id killed --in 0s -- sh -c "kill -KILL \$\$"'
try 'nereus run --until-idle 2>/dev/null'
try 'nereus list --state PUBLISHED --state DEAD_LETTER --state UNCERTAIN'
try 'nereus uncertain'
try 'nereus status --check'
