#!/bin/sh
# The exact ends of cancel and reschedule: applied, already so, too late, never heard of, conflict, another version.
. "$(dirname "$0")/store.sh"

try 'nereus schedule --id tea --in 1h -- echo tea'
try 'nereus reschedule tea --in 2h --if-version 1'
try 'nereus reschedule tea --in 3h --if-version 1'
try 'nereus cancel tea'
try 'nereus cancel tea'
try 'nereus reschedule tea --in 1h'
try 'nereus cancel coffee'
try 'nereus schedule --id tea --in 1h -- echo milk'
try 'nereus schedule --id cake --in 0s -- echo cake'
try 'nereus run --until-idle 2>/dev/null'
try 'nereus cancel cake'
