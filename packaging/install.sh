#!/bin/sh
# Installs Dragoman @VERSION@ for one user: no root, nothing outside the prefix. The archive must have the checksum below.
# Usage: install.sh [--prefix DIR] [--from DIR-OR-URL] [--uninstall]      default prefix: ~/.local
set -eu

version="@VERSION@"
from="@BASE@"
prefix="${HOME:-}/.local"
uninstall=no

checksum_of() {
  case $1 in
@CHECKSUMS@
    *) return 1 ;;
  esac
}

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

while [ $# -gt 0 ]; do
  case $1 in
    --prefix) [ $# -ge 2 ] || fail "--prefix needs a folder."; prefix=$2; shift 2 ;;
    --from) [ $# -ge 2 ] || fail "--from needs a folder or an address."; from=$2; shift 2 ;;
    --uninstall) uninstall=yes; shift ;;
    *) fail "unknown option $1. Usage: install.sh [--prefix DIR] [--from DIR-OR-URL] [--uninstall]" ;;
  esac
done
case $prefix in
  /*) ;;
  *) prefix=$PWD/$prefix ;;
esac
list=$prefix/lib/dragoman/files

# Removes the files of the list and the folders that are empty then.
remove() {
  while IFS= read -r file; do
    case $file in *..*|/*) continue ;; esac
    rm -f "$prefix/$file"
  done <"$list"
  rm -f "$list"
  for folder in lib/dragoman share/doc/dragoman; do
    rmdir "$prefix/$folder" 2>/dev/null || true
  done
}

if [ "$uninstall" = yes ]; then
  [ -f "$list" ] || fail "Dragoman was not installed in $prefix by this script."
  remove
  echo "Dragoman is removed from $prefix. Chats and settings stay; docs/files.md lists their folders."
  exit 0
fi

case $(uname -s) in
  Linux) system=linux ;;
  Darwin) system=macos ;;
  *) fail "there is no archive for $(uname -s)." ;;
esac
case $(uname -m) in
  x86_64|amd64) machine=x86_64 ;;
  aarch64|arm64) machine=aarch64 ;;
  *) fail "there is no archive for $(uname -m)." ;;
esac
name=dragoman-$version-$system-$machine
wanted=$(checksum_of "$name.tar.gz") || fail "this release has no archive $name.tar.gz."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

archive=$work/$name.tar.gz
case $from in
  http://*|https://*)
    if command -v curl >/dev/null 2>&1; then
      curl --fail --silent --show-error --location --output "$archive" "$from/$name.tar.gz"
    elif command -v wget >/dev/null 2>&1; then
      wget -q -O "$archive" "$from/$name.tar.gz"
    else
      fail "curl or wget is needed."
    fi ;;
  *) cp "${from#file://}/$name.tar.gz" "$archive" ;;
esac

if command -v sha256sum >/dev/null 2>&1; then
  found=$(sha256sum "$archive")
elif command -v shasum >/dev/null 2>&1; then
  found=$(shasum -a 256 "$archive")
else
  fail "sha256sum or shasum is needed to check the archive."
fi
[ "${found%% *}" = "$wanted" ] || fail "the archive does not have the checksum of this release. Nothing was installed."

tar -xzf "$archive" -C "$work"
unpacked=$work/$name
"$unpacked/bin/dragoman" --version >/dev/null || fail "the program does not run on this machine. Nothing was installed."
put() {
  mkdir -p "$prefix/${1%/*}"
  cp "$unpacked/$1" "$prefix/$1.new"
  mv -f "$prefix/$1.new" "$prefix/$1"
}
(cd "$unpacked" && find . -type f | sed 's|^\./||') >"$work/files"
while IFS= read -r file; do
  [ "$file" = bin/dragoman ] || put "$file"
done <"$work/files"
# The program comes last and at once, also while an older one runs. Then files that only the older one had are removed.
put bin/dragoman
if [ -f "$list" ]; then
  while IFS= read -r file; do
    case $file in *..*|/*) continue ;; esac
    grep -qxF "$file" "$work/files" || rm -f "$prefix/$file"
  done <"$list"
fi
cp "$work/files" "$list"
echo script >"$prefix/lib/dragoman/package"

echo "Dragoman $version is installed: $prefix/bin/dragoman"
case :${PATH:-}: in
  *":$prefix/bin:"*) ;;
  *) echo "Add $prefix/bin to your PATH, for example in ~/.profile:  export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
echo "Next: dragoman setup, or dragoman chat"
