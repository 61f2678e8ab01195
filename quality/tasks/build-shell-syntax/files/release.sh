#!/bin/sh
# Prints the next version: release.sh VERSION [--minor]
set -eu
major=${1%%.*}
rest=${1#*.}
minor=${rest%%.*}
patch=${rest#*.}
if [ "${2:-}" = --minor ] then
  minor=$((minor + 1))
  patch=0
else
  patch=$((patch + 1)
fi
echo "$major.$minor.$patch"
