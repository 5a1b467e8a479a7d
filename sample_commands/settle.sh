#!/bin/sh
# Something needs a person; three commands later it is settled. What was killed is uncertain until somebody says, by name
# and with evidence, what became of it.
. "$(dirname "$0")/store.sh"

ledger="$place/ledger"
try 'nereus schedule -q --id transfer-17 --in 0s --cwd / --env LEDGER="$ledger" -- sh -c "echo 17 >> \"\$LEDGER\"; kill -KILL \$\$"'
try 'nereus run --until-idle 2>/dev/null'
try 'nereus status --check'
try 'nereus uncertain report'
try 'cat "$ledger"'
try 'nereus resolve transfer-17 --attempt 1 --published --by anna --evidence "17 stands in the ledger"'
try 'nereus status --check'
