#!/bin/sh
. ./lib.sh
echo "reports: $DIR"
echo "backup: ${BACKUP_DIR}"
