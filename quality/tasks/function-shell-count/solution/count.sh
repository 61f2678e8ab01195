#!/bin/sh
# Counts the lines of stdin that are neither empty nor comments.
awk 'NF && $1 !~ /^#/ { count++ } END { print count + 0 }'
