#!/bin/sh
# Starts the program in the package of this platform. `exec` replaces this shell: no process stays in between.
try() {
  place=$1 found=
  shift
  for platform in @PLATFORMS@; do
    [ -x "$here/${place}dragoman-$platform/bin/dragoman" ] || continue
    # Packages of several platforms in one folder: this machine says which one it is.
    if [ -n "$found" ]; then
      found=$(uname -sm | sed 's/Linux/linux/; s/Darwin/darwin/; s/x86_64/x64/; s/aarch64/arm64/; s/ /-/')
      break
    fi
    found=$platform
  done
  [ -z "$found" ] || exec "$here/${place}dragoman-$found/bin/dragoman" "$@"
}
# The usual places first, as seen from the link that npm made: they need no other program, which would cost milliseconds.
if [ -h "$0" ]; then
  here=${0%/*}
  case $here in
    */node_modules/.bin) try ../ "$@" ;;
    *) try ../lib/node_modules/dragoman/node_modules/ "$@" ;;
  esac
fi
# Else beneath this package or beside it: package managers do either.
self=$0
while [ -h "$self" ]; do
  link=$(readlink "$self")
  case $link in
    /*) self=$link ;;
    *) self=${self%/*}/$link ;;
  esac
done
here=${self%/*}
try ../node_modules/ "$@"
try ../../ "$@"
echo "dragoman: the package of this platform is missing. Install again with optional packages: npm install --global --include=optional dragoman" >&2
exit 1
