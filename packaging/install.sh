#!/bin/sh
# Install bcd on this machine, bring an installation up to date, or take it away again.
#
# Everything is looked at before anything is changed; every file is written beside its place and moved there; run twice
# it changes nothing the second time. What it will not do is told as a sentence with what to do (docs/operations/install.md).
# status: 0 done; 1 could not be done; 2 wrong usage, or a machine that is not as it must be: nothing was changed
set -eu
umask 022
LC_ALL=C
export LC_ALL

usage() {
	cat <<'USAGE'
usage: install.sh --binary FILE [options]
       install.sh --uninstall [--purge] [--dry-run]

  --binary FILE       the bcd to install; a node that updates itself keeps its own unless --replace is given
  --sha256 HEX        what FILE must hash to
  --split             the node as the user bcd, with root's half in bcd-helper.service
  --gateway URL       [node] gateway, wss://...
  --pins PIN,PIN      [update] release_pins
  --threshold N       [update] release_threshold
  --replace           put FILE in the place of what the node updated itself to; its next update adopts it
  --allow-downgrade   take a FILE older than what is installed, or below the release floor
  --no-start          write everything, enable the service, start nothing
  --dry-run           say what would be done, and change nothing
  --uninstall         remove program and units; configuration, records and data stay
  --purge             with --uninstall: remove these too, and the user bcd
USAGE
}

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
entrypoint=/usr/local/bin/bcd
slots=/usr/local/lib/bcd
data=/var/lib/bcd
config=/etc/bcd/config.toml
units=/etc/systemd/system
user=bcd
unit_marker="written by bcd's installer"
bcd_marker='# Written by bcd, '

binary='' sha256='' gateway='' pins='' threshold=''
split=no replace=no downgrade=no start=yes dry=no uninstall=no purge=no
work='' new='' new_config=''

say() { printf '%s\n' "$*"; }
refuse() { # SENTENCE WHAT-TO-DO
	printf 'install.sh: %s\n  %s\n' "$1" "$2" >&2
	exit 2
}
fail() {
	printf 'install.sh: %s\n  %s\n' "$1" "$2" >&2
	exit 1
}
clean_up() {
	[ -z "$work" ] || rm -rf -- "$work"
	[ -z "$new" ] || rm -f -- "$new"
	[ -z "$new_config" ] || rm -f -- "$new_config"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Do it, or in a dry run say it.
run() {
	if [ "$dry" = yes ]; then say "would: $*"; else "$@"; fi
}
have() { command -v "$1" >/dev/null 2>&1; }

# -- what is asked ---------------------------------------------------------------------------------------------------

read_arguments() {
	while [ $# -gt 0 ]; do
		case $1 in
		--binary | --sha256 | --gateway | --pins | --threshold)
			[ $# -ge 2 ] || refuse "$1 wants a value" "install.sh --help"
			[ -n "$2" ] || refuse "$1 wants a value" "install.sh --help"
			case $1 in
			--binary) binary=$2 ;;
			--sha256) sha256=$2 ;;
			--gateway) gateway=$2 ;;
			--pins) pins=$2 ;;
			--threshold) threshold=$2 ;;
			esac
			shift
			;;
		--split) split=yes ;;
		--replace) replace=yes ;;
		--allow-downgrade) downgrade=yes ;;
		--no-start) start=no ;;
		--dry-run) dry=yes ;;
		--uninstall) uninstall=yes ;;
		--purge) purge=yes ;;
		-h | --help)
			usage
			exit 0
			;;
		*) refuse "there is no option '$1'" "install.sh --help" ;;
		esac
		shift
	done
	if [ "$uninstall" = yes ]; then
		[ "$binary$sha256$gateway$pins$threshold$split$replace$downgrade$start" = nononoyes ] ||
			refuse "--uninstall goes with --purge and --dry-run alone" "install.sh --help"
	else
		[ "$purge" = no ] || refuse "--purge goes with --uninstall" "install.sh --uninstall --purge"
		[ -n "$binary" ] || refuse "which bcd is to be installed?" "install.sh --binary FILE"
	fi
	check_values
	if [ "$dry" = no ] && [ "$(id -u)" -ne 0 ]; then
		refuse "only root can install bcd" "run it with sudo, or with --dry-run to see what it would do"
	fi
}

check_values() {
	case $sha256 in
	*[!0-9a-fA-F]*) refuse "--sha256 is 64 hex digits" "sha256sum FILE prints it" ;;
	esac
	case ${#sha256} in 0 | 64) ;; *) refuse "--sha256 is 64 hex digits" "sha256sum FILE prints it" ;; esac
	case $threshold in
	0* | *[!0-9]*) refuse "--threshold is a number from 1" "how many of the pinned keys must sign: 2" ;;
	esac
	case $gateway in
	'' | wss://?*) ;;
	*) refuse "--gateway is no wss:// address" "--gateway wss://gateway.example.com/v1/node" ;;
	esac
	case $gateway in *['"\ 	']*) refuse "--gateway has a character that no address has" "quote it for the shell" ;; esac
	count=0
	for pin in $(printf '%s' "$pins" | tr ',' ' '); do
		count=$((count + 1))
		case $pin in
		sha256/*[!A-Za-z0-9+/=]*) ;;
		sha256/*=) [ ${#pin} -eq 51 ] && continue ;;
		esac
		refuse "'$pin' is no pin: sha256/ and the base64 of 32 bytes" "bcd release keygen prints a key's pin"
	done
	[ -z "$pins" ] || [ "$count" -ge "${threshold:-2}" ] ||
		refuse "$count pins can't reach a threshold of ${threshold:-2}" "pin more keys, or say --threshold"
}

# -- what is there ---------------------------------------------------------------------------------------------------

# The text of a key's value in a file: everything after the `=`, an array over several lines whole. Plain tables and
# bare keys alone; what is written otherwise is not found, and the check of the result shows it.
value_of() { # FILE TABLE KEY
	[ -f "$1" ] || return 0
	awk -v table="$2" -v key="$3" '
		/^[ \t]*\[/ && !more { inside = ($0 ~ "^[ \t]*\\[[ \t]*" table "[ \t]*\\][ \t]*(#.*)?$"); next }
		more { print; if ($0 ~ /\]/) exit; next }
		inside && $0 ~ "^[ \t]*" key "[ \t]*=" {
			sub(/^[^=]*=[ \t]*/, ""); print
			if ($0 ~ /^\[/ && $0 !~ /\]/) { more = 1; next }
			exit
		}' "$1"
}
has_table() { [ -f "$1" ] && grep -Eq "^[ 	]*\\[[ 	]*$2[ 	]*\\]" "$1"; }
text_of() { value_of "$@" | sed -n 's/^"\([^"]*\)".*/\1/p'; }

# A file with one key set: replaced where it stands, else added below its table's head, else with the table at the end.
with_key() { # FILE TABLE KEY VALUE
	VALUE=$4 awk -v table="$2" -v key="$3" '
		BEGIN { value = ENVIRON["VALUE"] }
		{ line[NR] = $0 }
		/^[ \t]*\[/ {
			inside = ($0 ~ "^[ \t]*\\[[ \t]*" table "[ \t]*\\][ \t]*(#.*)?$")
			if (inside && !head) head = NR
		}
		inside && !at && $0 ~ "^[ \t]*" key "[ \t]*=" { at = NR }
		END {
			for (n = 1; n <= NR; n++) {
				if (n == at) {
					rest = line[n]; sub(/^[^=]*=[ \t]*("[^"]*"|[^# \t]*)/, "", rest)
					print key " = " value rest
				} else print line[n]
				if (n == head && !at) print key " = " value
			}
			if (!head) { if (NR) print ""; print "[" table "]"; print key " = " value }
		}' "$1"
}

json_text() { sed -n "s/.*\"$1\": *\"\\([^\"]*\\)\".*/\\1/p" | head -n 1; }
json_number() { sed -n "s/.*\"$1\": *\\([0-9][0-9]*\\).*/\\1/p" | head -n 1; }

is_marked() { # FILE MARKER
	[ -f "$1" ] && [ ! -L "$1" ] && head -n 1 -- "$1" | grep -qF -- "$2"
}

our_units() { if [ "$split" = yes ]; then say "bcd.service bcd-helper.service bcd-helper.socket"; else say bcd.service; fi; }
unit_source() { if [ "$split" = yes ]; then say "$here/systemd/split/$1"; else say "$here/systemd/root/$1"; fi; }

look_at_binary() {
	[ -f "$binary" ] || refuse "$binary is no file" "give the bcd that was downloaded"
	[ -s "$binary" ] || refuse "$binary is empty" "download it again"
	if [ -n "$sha256" ]; then
		found=$(sha256sum -- "$binary" | cut -d ' ' -f 1)
		[ "$found" = "$(printf '%s' "$sha256" | tr 'A-F' 'a-f')" ] ||
			refuse "$binary hashes to $found, not to what --sha256 says" "download it again; do not install this file"
	fi
	if [ "$dry" = yes ]; then
		[ -x "$binary" ] || refuse "$binary is not executable, so a dry run can't ask it for its version" "chmod +x it"
		candidate=$binary
	else
		# The very bytes that will be started are asked, where they will be started: not a name that may change meanwhile,
		# and not below a /tmp that is mounted noexec.
		[ -d "$(dirname -- "$entrypoint")" ] || mkdir -p -- "$(dirname -- "$entrypoint")"
		new=$(mktemp "$(dirname -- "$entrypoint")/.bcd.install.XXXXXX")
		cat -- "$binary" >"$new"
		chmod 0755 "$new"
		candidate=$new
	fi
	case $candidate in */*) ;; *) candidate=./$candidate ;; esac
	said=$("$candidate" version --json 2>/dev/null </dev/null) ||
		refuse "$binary does not run here" "take the bcd that was made for $(uname -s)-$(uname -m)"
	version=$(printf '%s' "$said" | json_text version)
	sequence=$(printf '%s' "$said" | json_number sequence)
	case $version/$sequence in
	/* | */) refuse "$binary is no bcd: it does not say its version" "give the bcd that was downloaded" ;;
	esac
}

# The floor outlives an uninstall: what this node once confirmed, it does not go below unasked.
look_at_floor() {
	said=$("$candidate" update --json --config "$config" 2>/dev/null </dev/null) || said=''
	floor=$(printf '%s' "$said" | json_number floor)
	[ "$downgrade" = yes ] || [ "$sequence" -ge "${floor:-0}" ] || refuse \
		"bcd $version (sequence $sequence) is below this node's release floor, $floor" "take a newer one, or say --allow-downgrade"
}

# What becomes of the entrypoint: `put`, or `keep` with the reason said.
look_at_entrypoint() {
	place=put
	[ -e "$entrypoint" ] || [ -L "$entrypoint" ] || return 0
	is_link=no
	if [ -L "$entrypoint" ]; then
		is_link=yes
		[ "$(readlink -- "$entrypoint")" = "$slots/current" ] || refuse \
			"$entrypoint is a link to $(readlink -- "$entrypoint"), which is not bcd's" "move it away: mv $entrypoint $entrypoint.old"
	elif [ ! -f "$entrypoint" ]; then
		refuse "$entrypoint is neither a file nor a link" "move it away: mv $entrypoint $entrypoint.old"
	fi
	if cmp -s -- "$candidate" "$entrypoint"; then
		place=keep
		say "$entrypoint is bcd $version already"
		return 0
	fi
	said=$("$entrypoint" version --json 2>/dev/null </dev/null) || said=''
	old_version=$(printf '%s' "$said" | json_text version)
	old_sequence=$(printf '%s' "$said" | json_number sequence)
	if [ "$is_link" = yes ] && [ "$replace" = no ]; then
		if [ -n "$old_sequence" ] && [ "$sequence" -le "$old_sequence" ]; then
			place=keep
			say "this node has updated itself to bcd ${old_version} (sequence $old_sequence); bcd $version is not put in its place"
			return 0
		fi
		refuse "this node updates itself (it runs ${old_version:-a bcd that does not say its version}); bcd $version would pass by its checks" \
			"roll it out as a release; or say --replace, and the next update adopts it"
	fi
	[ "$downgrade" = yes ] || [ "$sequence" -ge "${old_sequence:-0}" ] || refuse \
		"bcd $version (sequence $sequence) is older than what is installed, $old_version (sequence $old_sequence)" \
		"take a newer one, or say --allow-downgrade"
}

look_at_config() {
	for pair in "node data_dir $data" "update slots_dir $slots" "update entrypoint $entrypoint" "helper node_user $user" \
		"helper socket /run/bcd/helper.sock"; do
		# shellcheck disable=SC2086  # three words
		set -- $pair
		found=$(text_of "$config" "$1" "$2")
		[ -z "$found" ] || [ "$found" = "$3" ] || refuse "$config has [$1] $2 = \"$found\", and this installer knows $3 alone" \
			"take the line out, or set bcd up by hand: docs/operations/install.md"
	done
	[ "$split" = yes ] || ! has_table "$config" helper ||
		refuse "$config has a table [helper]: this node's user is not root" "say --split"
	if [ "$split" = yes ] && [ -e "$data/update/update.json" ]; then
		refuse "this node's records are in $data/update, and with --split they are root's, in $slots" \
			"systemctl stop bcd.service && mkdir -p $slots && mv $data/update/*.json* $slots/ && rmdir --ignore-fail-on-non-empty $data/update"
	fi
	if [ "$split" = no ] && [ -e "$slots/update.json" ]; then
		refuse "this node's records are in $slots, and without --split they are in $data/update" \
			"say --split; or: systemctl stop bcd.service && mkdir -p $data/update && mv $slots/up*.json $slots/history* $data/update/"
	fi
	for pending in "$data/update/upgrade.json" "$slots/upgrade.json"; do
		[ ! -e "$pending" ] || refuse \
			"an update is pending on this node" "wait until it is welcomed or swapped back (bcd update), and run this again"
	done
}

# The configuration as it is to be, in $work/config.toml.
draft_config() {
	work=$(mktemp -d)
	if [ -f "$config" ]; then cat -- "$config" >"$work/config.toml"; else : >"$work/config.toml"; fi
	[ -z "$gateway" ] || set_key node gateway "\"$gateway\""
	[ -z "$threshold" ] || set_key update release_threshold "$threshold"
	[ -z "$pins" ] || set_key update release_pins "\"$pins\""
	[ "$split" = no ] || set_key helper node_user "\"$user\""
	said=$("$candidate" update --config "$work/config.toml" 2>&1 >/dev/null </dev/null) || [ $? -ne 2 ] || refuse \
		"the configuration would not be right: $said" "correct $config, or what was given here"
}

set_key() { # TABLE KEY VALUE
	before=$(value_of "$work/config.toml" "$1" "$2")
	if [ "$(words_of "$before")" = "$(words_of "$3")" ]; then return 0; fi
	case $before in
	'' | \"*\" | \"*\"[\ \	]*'#'* | [0-9]*) ;;
	*) refuse "$config has $2 in a form that this installer does not change" "set it there yourself, under [$1]: $2 = $3" ;;
	esac
	with_key "$work/config.toml" "$1" "$2" "$3" >"$work/next"
	mv -f -- "$work/next" "$work/config.toml"
}

# A value without what does not matter: quotes, brackets, blanks, comments, order.
words_of() { printf '%s\n' "$1" | sed 's/#.*//' | tr -d '"[] \t\r' | tr ',' '\n' | sed '/^$/d' | sort | tr '\n' ','; }

look_at_units() {
	for unit in $(our_units); do
		[ -f "$(unit_source "$unit")" ] || refuse "$(unit_source "$unit") is missing" "run install.sh beside its folder systemd"
		[ ! -e "$units/$unit" ] && [ ! -L "$units/$unit" ] || is_marked "$units/$unit" "$unit_marker" || refuse \
			"$units/$unit is not bcd's" "move it away, and what you changed there into a drop-in: systemctl edit $unit"
	done
}

# -- what is done ----------------------------------------------------------------------------------------------------

# Write a file beside its place and move it there; nothing where it is so already. Sets `changed`.
put() { # SOURCE PLACE MODE
	if [ -f "$2" ] && [ ! -L "$2" ] && cmp -s -- "$1" "$2"; then return 0; fi
	changed=yes
	if [ "$dry" = yes ]; then
		say "would: write $2"
		return 0
	fi
	beside=$(mktemp "$(dirname -- "$2")/.bcd.install.XXXXXX")
	if ! { cat -- "$1" >"$beside" && chmod "$3" "$beside" && mv -f -- "$beside" "$2"; }; then
		rm -f -- "$beside"
		fail "$2 could not be written" "look at the error above; nothing was put in its place"
	fi
	say "wrote $2"
}

directory() { # PATH OWNER MODE
	if [ ! -d "$1" ]; then run mkdir -p -- "$1"; fi
	if [ "$dry" = yes ]; then return 0; fi
	if [ "$(stat -c %U:%G -- "$1")" != "$2" ]; then chown -Rh "$2" "$1"; fi
	chmod "$3" "$1"
}

make_user() {
	if id -u "$user" >/dev/null 2>&1; then
		[ "$(id -u "$user")" -ne 0 ] || fail "the user $user is root" "remove that user"
		return 0
	fi
	if have useradd; then
		run useradd --system --user-group --no-create-home --home-dir "$data" --shell /usr/sbin/nologin "$user"
	else
		run addgroup -S "$user"
		run adduser -S -D -H -h "$data" -s /sbin/nologin -G "$user" "$user"
	fi
}

install_bcd() {
	look_at_binary
	look_at_config
	look_at_entrypoint
	if [ "$place" = put ]; then look_at_floor; fi
	draft_config
	if have systemctl; then look_at_units; fi

	changed=no
	owner=root:root
	if [ "$split" = yes ]; then
		make_user
		owner=$user:$user
	fi
	directory "$(dirname -- "$config")" root:root 0755
	directory "$slots" root:root 0755
	directory "$data" "$owner" 0755
	install_config
	if [ "$place" = put ]; then
		changed=yes
		if [ "$dry" = yes ]; then say "would: put bcd $version at $entrypoint"; else
			sync
			mv -f -- "$new" "$entrypoint"
			new=''
			if have restorecon; then restorecon -- "$entrypoint" || :; fi
			say "put bcd $version at $entrypoint"
		fi
	fi
	if have systemctl; then install_units; else
		say "there is no systemd here: have $entrypoint node started by what you have; a crash loop is not rolled back"
	fi
	if [ "$dry" = no ]; then sync; fi
}

install_config() {
	if [ ! -s "$work/config.toml" ] && [ ! -e "$config" ]; then
		say "there is no $config: nothing is updated before it pins release keys (--pins)"
		return 0
	fi
	if [ -f "$config" ] && cmp -s -- "$work/config.toml" "$config"; then return 0; fi
	changed=yes
	if [ "$dry" = yes ]; then
		say "would: write $config:"
		sed 's/^/    /' "$work/config.toml"
		return 0
	fi
	new_config=$(mktemp "$config.XXXXXX")
	chmod 0644 "$new_config"
	if [ -f "$config" ]; then
		cp -p -- "$config" "$new_config" # its owner and mode
	fi
	cat -- "$work/config.toml" >"$new_config"
	mv -f -- "$new_config" "$config"
	new_config=''
	say "wrote $config"
}

install_units() {
	for unit in $(our_units); do
		put "$(unit_source "$unit")" "$units/$unit" 0644
	done
	# Without booted systemd (an image that is being made) links are all there is to do.
	booted=no
	if [ -d /run/systemd/system ]; then booted=yes; fi
	if [ "$booted" = yes ]; then run systemctl daemon-reload; fi
	for unit in $(our_units); do
		systemctl is-enabled --quiet "$unit" 2>/dev/null || run systemctl --quiet enable "$unit"
	done
	if [ "$booted" = no ] || [ "$start" = no ]; then return 0; fi
	if [ "$changed" = no ] && systemctl is-active --quiet bcd.service; then return 0; fi
	if [ "$split" = yes ]; then
		start_unit bcd-helper.socket start
		start_unit bcd-helper.service restart
	fi
	start_unit bcd.service restart
}

start_unit() { # UNIT VERB
	if [ "$dry" = yes ]; then
		say "would: systemctl $2 $1"
		return 0
	fi
	systemctl reset-failed -- "$1" 2>/dev/null || :
	systemctl "$2" -- "$1" || fail "$1 does not start; everything is installed" "journalctl -u $1 -e; then run this again"
	say "$1 runs"
}

# -- and taken away --------------------------------------------------------------------------------------------------

remove() {
	for path in "$@"; do
		if [ -e "$path" ] || [ -L "$path" ]; then run rm -rf -- "$path"; fi
	done
}

uninstall_bcd() {
	if have systemctl; then
		for unit in bcd.service bcd-helper.service bcd-helper.socket; do
			is_marked "$units/$unit" "$unit_marker" || continue
			if [ -d /run/systemd/system ]; then run systemctl stop "$unit"; fi
			run systemctl --quiet disable "$unit"
			remove "$units/$unit"
		done
		for path in "$units/bcd-rollback.service" "$units/bcd.service.d/50-bcd-rollback.conf"; do
			if is_marked "$path" "$bcd_marker"; then remove "$path"; fi
		done
		if [ "$dry" = no ]; then rmdir -- "$units/bcd.service.d" 2>/dev/null || :; fi
		if [ -d /run/systemd/system ]; then run systemctl daemon-reload; fi
	fi
	if [ ! -L "$entrypoint" ] || [ "$(readlink -- "$entrypoint")" = "$slots/current" ]; then remove "$entrypoint"; fi
	remove "$slots/current" "$slots/previous" "$slots/bcd-a" "$slots/bcd-b" "$slots/bcd-rollback.sh" "$slots/slots.json"
	if [ "$purge" = yes ]; then
		remove "$slots" "$data" "$config"
		if [ "$dry" = no ]; then rmdir -- "$(dirname -- "$config")" 2>/dev/null || :; fi
		if id -u "$user" >/dev/null 2>&1; then
			if have userdel; then run userdel "$user"; else run deluser "$user"; fi
		fi
	else
		for path in "$config" "$data" "$slots"; do
			if [ -e "$path" ]; then say "kept: $path"; fi
		done
	fi
}

read_arguments "$@"
if [ "$uninstall" = yes ]; then uninstall_bcd; else install_bcd; fi
if [ "$dry" = yes ]; then say "nothing was changed"; fi
