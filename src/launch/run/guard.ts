// A small shell that outlives the launcher: when the launcher is gone without a message (kill -9), it kills the ranks' process groups.
// Ranks that have joined notice the loss themselves, but a program that never joined, or that computes without its event loop, cannot.
import { type ChildProcess, spawn } from 'node:child_process';

// The groups to kill come as lines on standard input; its end without `done` means that the launcher is dead.
// Ranks that can say why they exit get a second for it.
const SCRIPT = `
trap '' INT TERM HUP
live=
while read -r op pid; do
  case $op in
    add) live="$live $pid" ;;
    gone) rest=; for p in $live; do [ "$p" = "$pid" ] || rest="$rest $p"; done; live=$rest ;;
    done) exit 0 ;;
  esac
done
[ -n "$live" ] || exit 0
echo "multirail: the launcher (pid $1) is gone; ending its ranks" >&2
sleep 1
for p in $live; do kill -s KILL -- "-$p"; done 2>/dev/null
exit 0
`;

export class RankGuard {
  private readonly shell: ChildProcess;
  private usable = true;

  constructor(log: (text: string) => void) {
    // A session of its own, so that what kills the launcher's group does not kill the guard.
    this.shell = spawn('/bin/sh', ['-c', SCRIPT, 'multirail-guard', String(process.pid)], {
      stdio: ['pipe', 'ignore', 'inherit'],
      detached: true,
      env: { PATH: process.env.PATH },
    });
    const failed = (error: Error) => {
      if (this.usable) log(`no guard for the case that the launcher is killed: ${error.message}`);
      this.usable = false;
    };
    this.shell.on('error', failed);
    this.shell.stdin?.on('error', failed);
    this.shell.unref();
    (this.shell.stdin as unknown as { unref?: () => void } | null)?.unref?.();
  }

  add(groupId: number): void {
    this.say(`add ${groupId}`);
  }

  gone(groupId: number): void {
    this.say(`gone ${groupId}`);
  }

  /** The job is over, and its groups are ended: nothing is left to guard. */
  done(): void {
    this.say('done');
    this.usable = false;
    this.shell.stdin?.end();
  }

  private say(line: string): void {
    if (this.usable) this.shell.stdin?.write(`${line}\n`);
  }
}
