#!/usr/bin/env python3
"""A chat agent in Python: counts words, and goes on counting in its next run.

pinfold new counter --mode on-demand --input json --turns done -- examples/counter.py
"""
import json, pathlib, sys

memory = pathlib.Path("counter.json")
for line in sys.stdin:
    message = json.loads(line)  # id, text, and try: above 1 when an earlier run died with it
    seen = json.loads(memory.read_text()) if memory.exists() else {}
    seen[message["id"]] = len(message["text"].split())  # by id: a second try counts once
    memory.write_text(json.dumps(seen))
    print("PINFOLD_DONE", message["id"], json.dumps(f"{sum(seen.values())} words\nin {len(seen)} messages"), flush=True)
