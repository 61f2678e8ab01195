#!/bin/sh
# Installs Dragoman @VERSION@ for one user: no root, nothing outside the prefix. The archive must have the checksum below.
# Usage: install.sh [--prefix DIR] [--from DIR-OR-URL] [--uninstall]      default prefix: ~/.local
set -eu

version='@VERSION@'
from='@BASE@'
usage="Usage: install.sh [--prefix DIR] [--from DIR-OR-URL] [--uninstall]"

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

# Removes the files that a list names, except those of a second list.
remove_files() {
  while IFS= read -r file; do
    case $file in ''|*..*|/*) continue ;; esac
    grep -qxF -e "$file" "$2" || rm -f "$prefix/$file"
  done <"$1"
}

uninstall() {
  [ -f "$list" ] || fail "Dragoman was not installed in $prefix by this script."
  remove_files "$list" /dev/null
  rm -f "$list"
  for folder in lib/dragoman share/doc/dragoman; do
    rmdir "$prefix/$folder" 2>/dev/null || true
  done
  echo "Dragoman is removed from $prefix. Chats and settings stay in ~/.local/share/dragoman and ~/.config/dragoman."
}

# fetch NAME FILE: the archive of the release, from a folder or an address.
fetch() {
  case $from in
    http://*|https://*)
      if command -v curl >/dev/null 2>&1; then
        curl --fail --silent --show-error --location --output "$2" "$from/$1"
      elif command -v wget >/dev/null 2>&1; then
        wget -q -O "$2" "$from/$1"
      else
        fail "curl or wget is needed."
      fi ;;
    *) cp "${from#file://}/$1" "$2" ;;
  esac || fail "$from/$1 cannot be fetched. Nothing was installed."
}

verify() {
  if command -v sha256sum >/dev/null 2>&1; then
    found=$(sha256sum <"$1")
  elif command -v shasum >/dev/null 2>&1; then
    found=$(shasum -a 256 <"$1")
  else
    fail "sha256sum or shasum is needed to check the archive."
  fi
  [ "${found%% *}" = "$2" ] || fail "the archive does not have the checksum of this release. Nothing was installed."
}

put() {
  mkdir -p "$prefix/${1%/*}"
  cp "$unpacked/$1" "$prefix/$1.new"
  mv -f "$prefix/$1.new" "$prefix/$1"
}

main() {
  prefix=
  action=install
  while [ $# -gt 0 ]; do
    case $1 in
      --prefix) [ $# -ge 2 ] || fail "--prefix needs a folder."; prefix=$2; shift 2 ;;
      --from) [ $# -ge 2 ] || fail "--from needs a folder or an address."; from=$2; shift 2 ;;
      --uninstall) action=uninstall; shift ;;
      -h|--help) echo "$usage"; return ;;
      *) fail "unknown option $1. $usage" ;;
    esac
  done
  if [ -z "$prefix" ]; then
    [ -n "${HOME:-}" ] || fail "HOME is not set: name a folder with --prefix."
    prefix=$HOME/.local
  fi
  case $prefix in
    /*) ;;
    *) prefix=$PWD/$prefix ;;
  esac
  list=$prefix/lib/dragoman/files
  if [ "$action" = uninstall ]; then
    uninstall
    return
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
  # A program of a package manager, such as the link that pipx makes, stays.
  if { [ -e "$prefix/bin/dragoman" ] || [ -h "$prefix/bin/dragoman" ]; } && [ ! -f "$list" ]; then
    fail "$prefix/bin/dragoman is there, and this script did not put it there. Remove it first, or choose another --prefix."
  fi

  work=$(mktemp -d)
  trap 'rm -rf "$work"; rm -f "$prefix/bin/dragoman.new"' EXIT
  trap 'exit 1' HUP INT TERM
  archive=$work/$name.tar.gz
  fetch "$name.tar.gz" "$archive"
  verify "$archive" "$wanted"
  tar -xzf "$archive" -C "$work"
  unpacked=$work/$name
  # It is tried where it will stay: programs may be forbidden in the folder of temporary files.
  mkdir -p "$prefix/bin" "$prefix/lib/dragoman"
  cp "$unpacked/bin/dragoman" "$prefix/bin/dragoman.new"
  "$prefix/bin/dragoman.new" --version >/dev/null || fail "the program does not run on this machine. Nothing was installed."
  (cd "$unpacked" && find . -type f | sed 's|^\./||') >"$work/files"
  # The list names everything from the first file on: an installation that is stopped can be repeated and removed.
  if [ -f "$list" ]; then cp "$list" "$work/before"; else : >"$work/before"; fi
  cat "$work/before" "$work/files" >"$work/both"
  cp "$work/both" "$list"
  while IFS= read -r file; do
    [ "$file" = bin/dragoman ] || put "$file"
  done <"$work/files"
  echo script >"$prefix/lib/dragoman/package"
  # The program comes last and at once, also while an older one runs. Then files that only the older one had are removed.
  mv -f "$prefix/bin/dragoman.new" "$prefix/bin/dragoman"
  remove_files "$work/before" "$work/files"
  cp "$work/files" "$list"

  echo "Dragoman $version is installed: $prefix/bin/dragoman"
  case :${PATH:-}: in
    *":$prefix/bin:"*) ;;
    *) echo "Add $prefix/bin to your PATH, for example in ~/.profile:  export PATH=\"$prefix/bin:\$PATH\"" ;;
  esac
  echo "Next: dragoman setup, or dragoman chat"
}

# Nothing runs before the whole script was read, also where it comes through a pipe.
main "$@"
