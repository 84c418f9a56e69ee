#!/bin/sh
# A chat agent in sh: says back what it is told.
#   pinfold new parrot --mode on-demand --input json --turns done -- examples/parrot.sh
#   pinfold send parrot hello --wait
while IFS= read -r message; do # {"id":"01J...","text":"hello","try":1}
    id=${message#*'"id":"'} id=${id%%'"'*}
    text=${message#*'"text":"'} text=${text%'","try":'*}
    printf 'thinking about it\n'
    printf 'PINFOLD_DONE %s "you said: %s"\n' "$id" "$text" # the id, then the answer as a JSON string
done
