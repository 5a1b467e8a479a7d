#!/bin/sh
# Many commands from one file: a receipt a line, a line that makes no sense is refused and the rest goes on, and running
# the file again is safe.
. "$(dirname "$0")/store.sh"
cd "$(dirname "$0")"

try 'nereus schedule --batch batch.ndjson'
try 'nereus schedule --batch batch.ndjson'
try 'nereus run --once 2>/dev/null'
try 'nereus list --tag kind=report --state PUBLISHED'
try 'nereus list'
