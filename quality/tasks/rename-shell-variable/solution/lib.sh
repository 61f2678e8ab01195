# Sourced by the others.
: "${REPORT_DIR:=/tmp}"
BACKUP_DIR="$REPORT_DIR/backup"
export REPORT_DIR BACKUP_DIR
