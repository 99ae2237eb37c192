#!/usr/bin/env bash
# check.sh: run the Promela models of this folder through spin.
#
#   check.sh --quick   a subset with planted mistakes, about a minute and a half on one core; ends with one line
#                      "model: N checks as expected, M not". With a number behind it every third planted mistake, those of
#                      that number's turn, and all that has to hold
#   check.sh --full    everything, a table on standard output; see README.md for how long it takes
#   check.sh --list    what would be run
#   check.sh --one METHOD FILE [-D...]   one run; prints spin's own report, and the event sequence if there is an error
#
# Exit: 0 all as expected, 1 something is not, 2 nothing was checked (no spin or no C compiler).
# Needs spin and gcc (or CC). Missing spin is installed from Debian's packages when this runs as root, unless
# MULTIRAIL_TEST_APT=0. Uses one core. MULTIRAIL_MODEL_MB: memory limit of one run, default 12000.
# Works in a temporary folder that is removed at the end; writes nothing here.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mode=${1:---quick}
[ $# -gt 0 ] && shift
turn=
[ "$mode" = --quick ] && turn=${1:-}
cc=${CC:-gcc}
mb=${MULTIRAIL_MODEL_MB:-12000}
polite=
patience=1

not_checked() { echo "model: not checked: $1" >&2; exit 2; }
need_tools() {
	if ! command -v spin >/dev/null && [ "${MULTIRAIL_TEST_APT:-1}" != 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends spin; } >/dev/null 2>&1
	fi
	command -v spin >/dev/null || not_checked 'spin is not installed (Debian: apt-get install spin)'
	command -v "$cc" >/dev/null || not_checked "no C compiler ($cc)"
}

# One line per run: where it runs (q quick and full, f full only), what is expected (ok, error), how it is searched
# (exact: every state, compressed without loss; hc: every state up to hash collisions; bit: bitstate), limit in seconds,
# model, switches. A run of `f` that is stopped by its limit without an error counts as expected and is shown as "stopped".
runs() { cat <<'TABLE'
q ok    exact 30   failover.pml       -DMAXF=1
q ok    exact 60   failover.pml       -DMAXF=2 -DREDIAL -DOUT=1
f ok    exact 60   failover.pml       -DMAXF=1 -DREDIAL
f ok    exact 60   failover.pml       -DMAXF=2 -DREDIAL -DOUT=1 -DONESIDED
f ok    exact 60   failover.pml       -DMAXF=2 -DREDIAL -DOUT=1 -DV_HOLD -DS_READ
f ok    exact 60   failover.pml       -DMAXF=2 -DREDIAL -DOUT=1 -DNF=3
f ok    exact 300  failover.pml       -DMAXF=2 -DREDIAL -DOUT_R=1
f ok    exact 240  failover.pml       -DMAXF=3 -DREDIAL -DOUT=1
f ok    exact 120  failover.pml       -DMAXF=3 -DREDIAL -DOUT=1 -DV_NACKMAX
f error exact 60   failover.pml       -DMAXF=3 -DREDIAL -DOUT=1 -DT_NACKEPOCH
f ok    exact 120  failover.pml       -DNR=3 -DMAXF=1
f ok    cycle 60   failover.pml       -DMAXF=1 -DREDIAL -DOUT=1
q error exact 30   failover.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DP_NODUP
q error exact 30   failover.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DP_EAGERSENT
q error exact 30   failover.pml       -DMAXF=2 -DREDIAL -DOUT=1 -DP_SILENT
q error exact 30   failover.pml       -DMAXF=2 -DREDIAL -DOUT=1 -DP_RNACKLOST
f error exact 30   failover.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DP_ACKLOST
q error exact 30   failover.pml       -DMAXF=2 -DREDIAL -DOUT=1 -DP_STALERACK
q error exact 30   failover.pml       -DMAXF=2 -DREDIAL -DOUT=1 -DP_RACKTWICE
q error exact 30   failover.pml       -DMAXF=2 -DREDIAL -DOUT=1 -DP_DUPREVOKE
q error exact 30   failover.pml       -DMAXF=2 -DREDIAL -DOUT=1 -DP_KEEPSINKS
q error exact 30   failover.pml       -DMAXF=2 -DREDIAL -DOUT=1 -DP_OLDEPOCH
f error exact 30   failover.pml       -DMAXF=2 -DREDIAL -DOUT=1 -DP_OLDCOUNT
f error exact 30   failover.pml       -DMAXF=2 -DREDIAL -DOUT=1 -DP_NOSTOP
q error exact 30   failover.pml       -DMAXF=2 -DREDIAL -DOUT=1 -DP_RAILFENCE
q error exact 30   failover.pml       -DMAXF=2 -DREDIAL -DOUT=1 -DONESIDED -DP_RDLOST
q error exact 30   failover.pml       -DMAXF=2 -DREDIAL -DOUT=1 -DS_READ
f ok    exact 60   failover.pml       -DMAXF=2 -DREDIAL -DOUT=1 -DP_NOFENCE
q ok    exact 30   onesided.pml       -DMAXF=1 -DOUT=1
f ok    exact 60   onesided.pml       -DMAXF=1
f ok    exact 60   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1
f ok    exact 60   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DONESIDED
f ok    cycle 60   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1
q error exact 30   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DT_LETTER
q error exact 30   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DT_EARLYPUT
f ok    exact 60   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DV_SAMENUMBER
f error exact 30   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DT_EARLYPUT2
f error exact 30   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DT_REOFFER
f error exact 30   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DT_FENCEDFIN
q error exact 30   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DP_TWICE
q error exact 30   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DP_FINGONE
q error exact 30   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DP_NOFENCE
q error exact 30   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DP_NOWAITPUTS
q error exact 30   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DP_OLDPUT
f error exact 30   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DP_OLDFIN
f error exact 30   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DP_FINTWICE
f error exact 30   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DP_EARLYFIN
f error exact 30   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DP_PUTLOST
f error exact 30   onesided.pml       -DMAXF=1 -DREDIAL -DOUT=1 -DP_RAILFENCE
f error exact 30   onesided.pml       -DMAXF=2 -DREDIAL -DOUT=1 -DONESIDED -DP_RDLOST
q ok    exact 30   two-rendezvous.pml -DMAXF=1 -DREDIAL -DOUT=1
f ok    exact 60   two-rendezvous.pml -DMAXF=1
f ok    exact 60   two-rendezvous.pml -DMAXF=2 -DREDIAL -DOUT=1
f ok    exact 60   two-rendezvous.pml -DMAXF=2 -DREDIAL -DOUT=1 -DONESIDED
f ok    exact 60   two-rendezvous.pml -DMAXF=2 -DREDIAL -DOUT=1 -DONESLOT
f ok    exact 60   two-rendezvous.pml -DMAXF=2 -DREDIAL -DOUT=1 -DSHORT
f ok    exact 120  two-rendezvous.pml -DMAXF=2 -DREDIAL -DOUT=1 -DRSLOTS=2
f ok    exact 120  two-rendezvous.pml -DMAXF=2 -DREDIAL -DOUT=1 -DNF=2
f ok    cycle 60   two-rendezvous.pml -DMAXF=1 -DREDIAL -DOUT=1
q error exact 30   two-rendezvous.pml -DMAXF=2 -DREDIAL -DOUT=1 -DP_NOGEN
q error exact 30   two-rendezvous.pml -DMAXF=2 -DREDIAL -DOUT=1 -DONESLOT -DP_NOGEN_S
q error exact 30   two-rendezvous.pml -DMAXF=2 -DREDIAL -DOUT=1 -DSHORT -DP_ACKGONE
f error exact 30   two-rendezvous.pml -DMAXF=2 -DREDIAL -DOUT=1 -DP_RNACKLOST
q error exact 30   two-rendezvous.pml -DMAXF=2 -DREDIAL -DOUT=1 -DP_SILENT
f error exact 30   two-rendezvous.pml -DMAXF=2 -DREDIAL -DOUT=1 -DP_DUPREVOKE
f error exact 30   two-rendezvous.pml -DMAXF=2 -DREDIAL -DOUT=1 -DNF=2 -DP_KEEPSINKS
f error exact 30   two-rendezvous.pml -DMAXF=2 -DREDIAL -DOUT=1 -DP_RACKTWICE
f error exact 30   two-rendezvous.pml -DMAXF=2 -DREDIAL -DOUT=1 -DRSLOTS=2 -DP_WIDEREVOKE
f error exact 30   two-rendezvous.pml -DMAXF=2 -DREDIAL -DOUT=1 -DP_RAILFENCE
f error exact 30   two-rendezvous.pml -DMAXF=2 -DREDIAL -DOUT=1 -DONESIDED -DP_RDLOST
q ok    exact 30   credit.pml         -DMAXF=1 -DREDIAL -DOUT=1
f ok    exact 60   credit.pml         -DMAXF=1
f ok    exact 60   credit.pml         -DMAXF=1 -DREDIAL -DOUT=1 -DINORDER -DBOUND=2
f ok    exact 90   credit.pml         -DMAXF=2 -DREDIAL -DOUT=1
f ok    exact 90   credit.pml         -DMAXF=2 -DREDIAL -DOUT=1 -DONESIDED
f ok    exact 90   credit.pml         -DMAXF=2 -DREDIAL -DOUT=1 -DNMSG=4 -DBOUND=2
f ok    cycle 60   credit.pml         -DMAXF=1 -DREDIAL -DOUT=1
q error exact 30   credit.pml         -DMAXF=0 -DP_BLOCK
q error exact 30   credit.pml         -DMAXF=1 -DREDIAL -DOUT=1 -DP_INCR
q error exact 30   credit.pml         -DMAXF=1 -DREDIAL -DOUT=1 -DP_RESENDTAKES
q error exact 30   credit.pml         -DMAXF=1 -DREDIAL -DOUT=1 -DP_DUPRETURNS
q error exact 30   credit.pml         -DMAXF=1 -DREDIAL -DOUT=1 -DBOUND=2 -DP_CREDITLOST
f error exact 30   credit.pml         -DMAXF=1 -DREDIAL -DOUT=1 -DP_LASTWINS
f error exact 30   credit.pml         -DMAXF=0 -DP_DATA
f error exact 30   credit.pml         -DMAXF=1 -DREDIAL -DOUT=1 -DP_NODUP
f error exact 30   credit.pml         -DMAXF=2 -DREDIAL -DOUT=1 -DONESIDED -DP_RDLOST
q ok    exact 30   bye.pml            -DMAXF=1 -DREDIAL
f ok    exact 60   bye.pml            -DMAXF=2 -DREDIAL
f ok    exact 60   bye.pml            -DMAXF=2 -DREDIAL -DOUT=1 -DONESIDED
f ok    exact 60   bye.pml            -DNR=3 -DMAXF=2 -DREDIAL -DOUT=1
f ok    cycle 60   bye.pml            -DMAXF=1 -DREDIAL -DOUT=1
q error exact 30   bye.pml            -DMAXF=0 -DT_LETTER
f error exact 30   bye.pml            -DMAXF=1 -DREDIAL -DOUT=1 -DP_EARLYBYE
f error exact 30   bye.pml            -DMAXF=1 -DREDIAL -DOUT=1 -DP_NOGONE
f error exact 30   bye.pml            -DMAXF=1 -DREDIAL -DOUT=1 -DP_BYEONCE
f error exact 30   bye.pml            -DMAXF=2 -DREDIAL -DOUT=1 -DONESIDED -DP_RDLOST
q ok    exact 30   agree.pml          -DN=3 -DMAXF=1 -DQ=2
q ok    exact 30   agree.pml          -DN=3 -DMAXF=2
q ok    exact 30   agree.pml          -DN=3 -DMAXF=1 -DGEN
f ok    exact 60   agree.pml          -DN=4 -DMAXF=1
f ok    exact 60   agree.pml          -DN=3 -DMAXF=2 -DQ=2
f ok    exact 300  agree.pml          -DN=3 -DMAXF=2 -DGEN
f ok    exact 300  agree.pml          -DN=3 -DMAXF=1 -DGEN -DQ=2
f ok    exact 300  agree.pml          -DN=4 -DMAXF=1 -DQ=2
f ok    exact 300  agree.pml          -DN=4 -DMAXF=2
q error exact 30   agree.pml          -DN=3 -DMAXF=2 -DP_NOACK
q error exact 30   agree.pml          -DN=3 -DMAXF=2 -DP_NOLOCK
f error exact 30   agree.pml          -DN=3 -DMAXF=2 -DP_NOBACK
f error exact 30   agree.pml          -DN=3 -DMAXF=2 -DP_NOTELL
q error exact 30   agree.pml          -DN=4 -DMAXF=1 -DP_STAYTREE
q error exact 30   agree.pml          -DN=3 -DMAXF=1 -DGEN -DP_LOCKGONE
q ok    exact 30   save.pml           -DSD=1 -DMAXF=1 -DA=3
q ok    exact 30   save.pml           -DSD=2 -DMAXF=1 -DA=4
f ok    exact 60   save.pml           -DSD=2 -DMAXF=1 -DA=4 -DREFUSE
f ok    exact 60   save.pml           -DSD=1 -DMAXF=2 -DA=3
f ok    exact 120  save.pml           -DSD=2 -DMAXF=2 -DA=4
q error exact 30   save.pml           -DSD=1 -DMAXF=2 -DA=4 -DP_ONESLOT
q error exact 30   save.pml           -DSD=1 -DMAXF=2 -DA=4 -DP_OWNWORD
q error exact 30   save.pml           -DSD=1 -DMAXF=2 -DA=4 -DP_NOHOLD
q error exact 30   save.pml           -DSD=1 -DMAXF=1 -DA=3 -DP_TWOSERIES
q error exact 30   save.pml           -DSD=1 -DMAXF=2 -DA=4 -DP_NOSPREAD
f error exact 30   save.pml           -DSD=1 -DMAXF=2 -DA=4 -DP_EARLY
f error exact 30   save.pml           -DSD=1 -DMAXF=1 -DA=4 -DREFUSE -DP_GHOST
q ok    exact 30   succession.pml     -DMAXF=1
q ok    exact 60   succession.pml     -DMAXF=2 -DFIRST=2
q error exact 30   succession.pml     -DMAXF=1 -DP_NOHOLES
q error exact 30   succession.pml     -DMAXF=1 -DP_TRIMCUT
q error exact 30   succession.pml     -DMAXF=1 -DP_UNNUMBERED
q error exact 30   succession.pml     -DMAXF=1 -DP_EARLYSEND
q error exact 30   succession.pml     -DMAXF=1 -DP_HOLETWICE
q error exact 30   succession.pml     -DMAXF=1 -DP_UNTILHEARD
q error exact 30   succession.pml     -DMAXF=1 -DP_BACKWARDS
f error exact 60   succession.pml     -DMAXF=1 -DP_LATECOUNT
f error exact 60   succession.pml     -DMAXF=2 -DFIRST=2 -DP_FORGET
f ok    hc    240  onesided.pml       -DMAXF=2 -DREDIAL -DOUT=1
f ok    bit   240  failover.pml       -DNR=3 -DMAXF=3 -DREDIAL -DOUT=1
f ok    exact 200  failover.pml       -DNR=3 -DMAXF=2 -DOUT=1
TABLE
}

case $mode in
--list) runs; exit 0 ;;
--quick | --full | --one) need_tools ;;
*) sed -n '2,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac

tmp=$(mktemp -d) || not_checked 'no temporary folder'
pid=
trap 'rm -rf "$tmp"' EXIT
trap '[ -n "$pid" ] && kill "$pid" 2>/dev/null; exit 130' INT TERM
cp "$here"/*.pml "$tmp" && cd "$tmp" || not_checked 'the models could not be copied'

# search METHOD LIMIT FILE FLAGS... -> files spin.out, gcc.out, pan.out
search() {
	local method=$1 limit=$2 file=$3 store opt=-O2 safe=-DSAFETY pan=(-m1000000 -n)
	shift 3
	case $method in
	exact) store=-DCOLLAPSE ;;
	hc) store=-DHC4 ;;
	bit) store=-DBITSTATE; pan+=(-w34 -k3) ;;
	cycle) store='-DCOLLAPSE -DNP' safe=; pan+=(-l) ;;
	*) echo "unknown method $method" >pan.out; return 1 ;;
	esac
	[ "$limit" -le 30 ] && opt=-O0                  # the compiler would take longer than the run
	rm -f pan pan.out ./*.trail
	spin -a "$@" "$file" >spin.out 2>&1 || { cat spin.out >pan.out; return 1; }
	# shellcheck disable=SC2086
	"$cc" $opt -w $safe $store -DVECTORSZ=2048 -DMEMLIM="$mb" -o pan pan.c >gcc.out 2>&1 || { cat gcc.out >pan.out; return 1; }
	$polite timeout -s INT $((limit * patience)) ./pan "${pan[@]}" >pan.out 2>&1 &
	pid=$!
	wait "$pid"
	pid=
	return 0
}
field() { sed -n "s/$1/\\1/p" pan.out | tail -1; }

if [ "$mode" = --one ]; then
	[ $# -ge 2 ] || not_checked 'usage: check.sh --one exact|hc|bit|cycle FILE [-D...]'
	method=$1 file=$2
	shift 2
	search "$method" 3600 "$file" "$@"
	cat pan.out
	[ -f "$file.trail" ] && spin -t -p -c "$@" "$file" | cut -c1-160
	grep -q 'errors: 0' pan.out
	exit
fi

good=0 bad=0 mistakes=0 left=0
# Each of these is searched to its end, in few seconds of its own: the limit is for what hangs, and not for a machine that is busy.
[ "$mode" = --quick ] && patience=4
[ "$mode" = --full ] && polite='nice -n 15'
[ "$mode" = --full ] && printf '%-9s %-8s %-6s %11s %7s %8s %7s  %s\n' result expected search states depth MB s run
while read -r where expect method limit file flags; do
	[ "$mode" = --quick ] && [ "$where" != q ] && continue
	if [ -n "$turn" ] && [ "$expect" = error ]; then
		mistakes=$((mistakes + 1))
		[ $(((mistakes + turn) % 3)) -ne 0 ] && { left=$((left + 1)); continue; }
	fi
	# shellcheck disable=SC2086
	if search "$method" "$limit" "$file" $flags; then
		errors=$(field '.*errors: \([0-9]*\).*')
		states=$(field '^ *\([0-9.e+]*\) states, stored.*')
		depth=$(field '.*depth reached \([0-9]*\),.*')
		used=$(field '^ *\([0-9.]*\)[[:space:]]*total actual memory usage.*')
		secs=$(field '.*elapsed time \([0-9.e+]*\) seconds.*')
		factor=$(field '.*hash factor: \([0-9.e+]*\).*')
		if [ -z "$errors" ]; then result=broken
		elif [ "$errors" != 0 ]; then result=error
		elif grep -qE 'Search not completed|max search depth too small' pan.out; then result=stopped
		else result=ok
		fi
	else
		result=broken states='' depth='' used='' secs='' factor=''
	fi
	if [ "$result" = "$expect" ] || { [ "$where$expect$result" = fokstopped ]; }; then good=$((good + 1)); mark=
	else bad=$((bad + 1)); mark='  <-- not as expected'
	fi
	if [ "$mode" = --full ]; then
		printf '%-9s %-8s %-6s %11s %7s %8s %7s  %s %s%s%s\n' "$result" "$expect" "$method" "${states:-?}" "${depth:-?}" \
			"${used:-?}" "${secs:-?}" "$file" "$flags" "${factor:+  (hash factor $factor)}" "$mark"
	elif [ -n "$mark" ]; then
		echo "$file $flags: expected $expect, got $result"
		[ "$result" = broken ] && head -5 pan.out
	fi
done < <(runs)
[ "$left" -gt 0 ] && echo "skipped: model: $left planted mistakes have no turn with $turn"
echo "model: $good checks as expected, $bad not"
[ "$bad" = 0 ]
