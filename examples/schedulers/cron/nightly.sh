#!/bin/sh
# Recompute yesterday's slice of a target, or the RANGE that is given:  nightly.sh TARGET [RANGE]
# Prints nothing when all is well, so that cron's mail is what a person has to read.
cd "$(dirname "$0")" || exit 2
yesterday=$(TZ=UTC date -d 'yesterday 12:00' +%F) # GNU date; TZ is the contract's time zone; noon exists on every day
range=${2:-$yesterday}
for pause in ${PAUSES:-60 300 900} stop; do
    said=$(reslice run "$1" "$range" 2>&1)
    code=$?
    case $code in
    0) exit 0 ;;
    4 | 6) [ "$pause" = stop ] || sleep "$pause" ;; # busy, or part-way with --per-slice: the same command again
    *) break ;;                                     # a person decides
    esac
done
printf '%s\n\nexit %s of: reslice run %s %s\n' "$said" "$code" "$1" "$range"
exit "$code"
