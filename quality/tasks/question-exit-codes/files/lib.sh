die() {
  echo "$2" >&2
  exit $(($1 + BASE))
}
BASE=10

load() {
  [ -e "$1" ] || return 3
  [ -s "$1" ] || return 4
  cat "$1"
}
