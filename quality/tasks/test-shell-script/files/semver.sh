#!/bin/sh
# Says whether the first version is older, same or newer: semver.sh A B, with two numbers each (1.10).
set -eu
if [ "$1" = "$2" ]; then
  echo same
elif [ "${1%.*}" -lt "${2%.*}" ]; then
  echo older
elif [ "${1%.*}" -gt "${2%.*}" ]; then
  echo newer
elif [ "${1#*.}" -lt "${2#*.}" ]; then
  echo older
else
  echo newer
fi
