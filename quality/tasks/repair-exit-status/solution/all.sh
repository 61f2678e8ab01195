#!/bin/sh
# Runs every program of the folder `steps`, names those that failed, and ends with 1 if there was one.
failed=0
for step in steps/*.sh; do
  if ! sh "$step"; then
    echo "failed: $step"
    failed=1
  fi
done
exit "$failed"
