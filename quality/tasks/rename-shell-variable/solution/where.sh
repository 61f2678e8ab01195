#!/bin/sh
. ./lib.sh
echo "reports: $REPORT_DIR"
echo "backup: ${BACKUP_DIR}"
