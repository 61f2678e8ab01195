#!/bin/sh
# Runs every program of the folder `steps`, names those that failed, and ends with 1 if there was one.
failed=0
ls steps/*.sh | while read -r step; do
  if ! sh "$step"; then
    echo "failed: $step"
    failed=1
  fi
done
exit "$failed"
