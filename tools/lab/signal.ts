// Signals to all processes of a network namespace.
import { runOk } from './run.ts';

const SIGNAL_SCRIPT = `
before=
round=0
while [ $round -lt 20 ]; do
  pids=$(ip netns pids "$2") || exit 1
  [ "$pids" != "$before" ] || exit 0
  [ -z "$pids" ] || kill -s "$1" $pids 2>/dev/null
  before=$pids
  round=$((round + 1))
done
echo "processes of $2 were still coming and going after $round rounds of SIG$1" >&2
exit 1
`;

/**
 * Sends a signal to every process of a namespace. A process may fork meanwhile, hence the rounds: until a round finds none that has not had
 * the signal, or, where the signal is not the end, none that the round before did not find.
 */
export async function signalAll(namespace: string, signal: 'KILL' | 'STOP' | 'CONT'): Promise<void> {
  await runOk(['sh', '-c', SIGNAL_SCRIPT, 'lab-signal', signal, namespace]);
}
