#!/bin/sh
# A chat agent in sh: says back what it is told.
#   pinfold new parrot --mode on-demand --turns done -- examples/parrot.sh
#   pinfold send parrot hello --wait
while IFS= read -r line; do
    printf 'thinking about it\n'
    printf 'PINFOLD_DONE you said: %s\n' "$line"
done
