#!/bin/sh
set -eu
expect() {
  [ "$(sh semver.sh "$1" "$2")" = "$3" ] || { echo "wrong: $1 $2"; exit 1; }
}
expect 1.2 1.2 same
expect 1.9 2.1 older
expect 2.1 1.9 newer
expect 1.2 1.10 older
expect 1.10 1.9 newer
expect 10.0 9.0 newer
