#!/bin/sh
# A command whose bytes were fixed beforehand, perhaps on another machine: sent twice, it is one command.
. "$(dirname "$0")/store.sh"
cd "$(dirname "$0")"

try 'nereus submit prepared.nereus'
try 'nereus submit prepared.nereus'
try 'nereus result prepared.nereus'
try 'nereus cancel sample-prepared'
