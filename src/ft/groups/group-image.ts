// What an image of a group's save has besides that of a rank which goes back by itself: the log of what was sent to other groups, since these may go
// back to saves that are older, and what the group plans by.
import { deserialize, serialize } from 'node:v8';
import type { LoggedImage } from '../../mpi/ft/logged-streams.ts';
import type { DecodedSection } from '../image/decode.ts';
import type { NewSection } from '../image/encode.ts';
import type { PlanState } from '../recover/periods.ts';
import type { Lacks } from './group-lacks.ts';

const SECTION = 'group';

export interface GroupImage {
  readonly plan: PlanState;
  readonly lacks: Lacks;
  readonly logged: readonly LoggedImage[];
}

interface Head {
  readonly plan: PlanState;
  readonly lacks: Lacks;
  /** Of each message: rank, context, tag, number, signature, whether it is synchronous, length. */
  readonly rows: Float64Array;
}
const WORDS = 7;

export function groupSections(plan: PlanState, lacks: Lacks, logged: Iterable<LoggedImage>): Omit<NewSection, 'crc'>[] {
  const all = [...logged];
  const rows = Float64Array.from(
    all.flatMap(({ to, ctx, tag, seq, signature, sync, payload }) => [to, ctx, tag, seq, signature, Number(sync), payload.length]),
  );
  const bytes = new Uint8Array(all.reduce((sum, { payload }) => sum + payload.length, 0));
  let at = 0;
  for (const { payload } of all) {
    bytes.set(payload, at);
    at += payload.length;
  }
  return [
    { kind: 'counters', name: SECTION, bytes: new Uint8Array(serialize({ plan, lacks, rows } satisfies Head)) },
    { kind: 'log', name: SECTION, bytes },
  ];
}

/** Undefined: the image was made without groups. Payloads are in memory of the image. */
export function groupImageOf(sections: readonly DecodedSection[]): GroupImage | undefined {
  const find = (kind: string): DecodedSection | undefined => sections.find((one) => one.kind === kind && one.name === SECTION);
  const head = find('counters');
  const log = find('log');
  if (head === undefined || log === undefined) return undefined;
  const { plan, lacks, rows } = deserialize(head.data) as Head;
  let at = 0;
  const logged = Array.from({ length: rows.length / WORDS }, (_, i): LoggedImage => {
    const [to, ctx, tag, seq, signature, sync, bytes] = rows.subarray(WORDS * i, WORDS * (i + 1));
    at += bytes;
    return { to, ctx, tag, seq, signature, sync: sync === 1, payload: log.data.subarray(at - bytes, at) };
  });
  return { plan, lacks, logged };
}
