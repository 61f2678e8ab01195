# Sourced by the others.
: "${DIR:=/tmp}"
BACKUP_DIR="$DIR/backup"
export DIR BACKUP_DIR
