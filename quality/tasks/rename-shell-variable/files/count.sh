#!/bin/sh
. ./lib.sh
ls "${DIR}" | wc -l | tr -d ' '
