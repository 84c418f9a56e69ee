#!/bin/sh
# Takes lines as they come and never answers: with `--turns line`, the default, a message is done when it is taken.
#   pinfold new worker --mode on-demand -- examples/worker.sh
while IFS= read -r line; do
    printf '%s %s\n' "$(date +%T)" "$line"
done
