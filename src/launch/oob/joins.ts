// Processes that join a running job, on the server's side: they hear what there is to know, everybody hears of them, and once each process
// that lives has heard, they stand by for all alike. So nobody is ever named as a successor whom some member does not know.
import type { JoinSeries } from '../../ulfm/join-series.ts';
import type { ExitInfo, Member } from './member.ts';
import type { OobBodies, OobKind } from './messages.ts';

export interface JoinsHost {
  readonly members: readonly Member[];
  readonly series: JoinSeries;
  /** Returns the number of the message; undefined when that process gets none any more. */
  send<K extends OobKind>(member: Member, kind: K, body: OobBodies[K]): number | undefined;
  declareExit(member: Member, exit: ExitInfo): void;
  /** Everybody is being told of that process. */
  onAdded(number: number): void;
  /** Each that lives knows that process. */
  onReady(member: Member): void;
}

export function exitBody(rank: number, { code, replaced = false, ...rest }: ExitInfo): OobBodies['processExit'] {
  return { rank, ...(code === undefined ? {} : { code }), ...rest, replaced };
}

export class Joins {
  private readonly host: JoinsHost;
  private haveEnded = false;

  constructor(host: JoinsHost) {
    this.host = host;
  }

  /** Nobody is started any more in place of those that die. */
  endStandbys(): void {
    this.haveEnded = true;
    for (const member of this.host.members) this.host.send(member, 'standbysEnd', {});
  }

  /** What has become of the others before that process joined. */
  tellHistory(member: Member): void {
    const { members, series, send } = this.host;
    for (const { rank, exit } of members) if (exit !== undefined && series.isKnown(rank)) send(member, 'processExit', exitBody(rank, exit));
    if (this.haveEnded) send(member, 'standbysEnd', {});
  }

  /** Everybody hears of a process that has joined, and of its entry for the modex. */
  announce(member: Member, json: Uint8Array): void {
    const { members, series, send } = this.host;
    const { rank: number, info } = member;
    if (info === undefined || member.exit !== undefined) return;
    for (const { rank, standsBy, isReady, exit } of members)
      if (standsBy && isReady && exit === undefined) send(member, 'standbyState', { rank, waiting: true, place: 0 });
    for (const other of series.join(number)) {
      const sequence = send(members[other], 'processJoined', { number, incarnation: info.incarnation, json });
      if (sequence === undefined) continue;
      const heard = (): void => {
        series.hear(other, number);
        this.takeReady();
      };
      // Whoever ends meanwhile is not waited for, see end().
      members[other].session.acknowledgedUpTo(sequence).then(heard, () => undefined);
    }
    this.host.onAdded(number);
    this.takeReady();
  }

  /** That process is over. */
  end(number: number): void {
    this.host.series.end(number);
    this.takeReady();
  }

  private takeReady(): void {
    const { members, series, onReady } = this.host;
    for (const number of series.ready.splice(0)) {
      members[number].isReady = true;
      onReady(members[number]);
    }
  }

  /** A newer process of its index has joined: that one is over, whether it lives or not, and it is told so, too. */
  replace(member: Member): void {
    if (member.exit !== undefined) return;
    const exit: ExitInfo = { code: undefined, signal: '', finalized: member.finalized, lost: true, replaced: true };
    this.host.send(member, 'processExit', exitBody(member.rank, exit));
    const { socket } = member;
    this.host.declareExit(member, exit);
    socket?.close(4002, 'replaced by a newer process');
  }
}
