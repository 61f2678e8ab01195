#!/bin/sh
. ./lib.sh
ls "${REPORT_DIR}" | wc -l | tr -d ' '
