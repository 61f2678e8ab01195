#!/bin/sh
# Copies the .txt files of a folder: backup.sh FOLDER TARGET
set -eu
folder=$1
target=$2
mkdir -p "$target"
for file in "$folder"/*.txt; do
  [ -e "$file" ] || continue
  cp $file "$target/"
done
