#!/bin/sh
. ./lib.sh
[ $# -eq 1 ] || die 64 "usage: run.sh FILE"
load "$1" || die $? "cannot load $1"
echo ok
