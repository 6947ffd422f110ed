#!/bin/sh
# Point `current` back at the slot that ran before the swap. For a new binary that cannot run at all: no Python, no
# bcd, only sh and coreutils (spec/self-update.md section 9). Run twice or for nothing it changes nothing.
#
# usage: rollback.sh SLOTS_DIR RECORDS_DIR [UNIT]
# With UNIT, systemd's: act only when that unit is at its start limit, and start it again afterwards.
# status: 0 rolled back, or nothing to roll back (said on stderr); 1 there is, but it must not or could not be done
set -eu
slots=$1
records=$2
unit=${3:-}

say() { echo "bcd-rollback: $*" >&2; }

record=$(cat -- "$records/upgrade.json" 2>/dev/null) || { say "no update is pending"; exit 0; }
case $record in
*'"state":"swapped"'*) ;;
*) say "no update is pending"; exit 0 ;;
esac
if [ -n "$unit" ]; then
	# One crash is no crash loop. `Result` keeps the crash's own word at the limit too; only `failed` (and not
	# auto-restart, nor failed-before-auto-restart) says that no restart is to come. With Restart=no that is true
	# after a single crash: then the operator wanted it so, and nothing was learned about the release.
	state=$(systemctl show --property=SubState --value -- "$unit")
	restart=$(systemctl show --property=Restart --value -- "$unit")
	if [ "$state" != failed ] || [ "$restart" = no ]; then
		say "$unit is $state with Restart=$restart: that is no crash loop"
		exit 0
	fi
fi
[ -L "$slots/previous" ] || { say "no previous slot to go back to"; exit 1; }
slot=$(readlink -- "$slots/previous")
case $slot in
bcd-a | bcd-b) ;;
*) say "previous names no slot: $slot"; exit 1 ;;
esac
# Cut off between the record and the links, `previous` still names the slot that now holds the new binary; and with
# `current` still on the old slot the new one never ran. Neither is a failed update, so neither is rolled back.
case $record in
*'"from_slot":"'"${slot#bcd-}"'"'*) ;;
*) say "the swap had not happened yet"; exit 0 ;;
esac
if [ "$(readlink -- "$slots/current" 2>/dev/null)" = "$slot" ]; then
	say "current is $slot already"
	exit 0
fi
if [ ! -f "$slots/$slot" ] || [ ! -s "$slots/$slot" ] || [ ! -x "$slots/$slot" ]; then
	say "$slots/$slot is no program; current stays where it is"
	exit 1
fi

: >"$records/rolled-back"
# Before the link: a record with `current` back and no marker would look as if the new binary had never run.
sync -- "$records" 2>/dev/null || sync
rm -f -- "$slots/.current.rollback.tmp"
ln -s -- "$slot" "$slots/.current.rollback.tmp"
mv -fT -- "$slots/.current.rollback.tmp" "$slots/current"
sync -- "$slots" "$records" 2>/dev/null || sync
say "current is $slot again"
if [ -n "$unit" ]; then
	systemctl reset-failed -- "$unit"
	systemctl --no-block start -- "$unit"
fi
