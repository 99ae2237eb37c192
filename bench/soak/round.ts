// One round of the soak: on the world, a copy of it, or parts of it, drawn by all ranks alike from the seed and the round's number.
// Imports the product's types, the parts of a round, the generator.
import type { Communicator } from '../../src/index.ts';
import { Prng } from '../../src/util/prng.ts';
import { AuditError } from './audit.ts';
import { collectives, objectCollectives } from './collectives.ts';
import { BLOCKING_PARTS, LONE_PARTS, MESSAGE_PARTS, type MessagePart } from './messages.ts';
import { type OwnState, TAGS, TAGS_OF_PART, Talk } from './talk.ts';

export interface RoundContext {
  seed: number;
  own: OwnState;
  /** On the world, over all rounds. */
  world: Talk;
  /** Blocking calls work over these rails. */
  sync: boolean;
}

const PARTS_MAX = TAGS / TAGS_OF_PART;

export async function runRound({ seed, own, world, sync }: RoundContext, round: number): Promise<void> {
  const prng = new Prng(`${seed}/round/${round}`);
  own.arena.reset();
  const comm = world.comm;
  const kind = prng.below(10);
  // Half of the rounds on the world itself.
  const made =
    kind < 5
      ? undefined
      : kind < 7
        ? await (sync && prng.chance(1, 2) ? comm.dupSync() : comm.dup())
        : kind < 9
          ? await split(comm, prng)
          : await comm.create(comm.group.include(prng.shuffle(comm.group.worldRanks.map((_, i) => i))));
  if (made === null) throw new AuditError('this rank is in none of the communicators that were made');
  const color = made === undefined ? 0 : Math.min(...made.group.worldRanks);
  const talk = made === undefined ? new Talk(comm, own, round, 0, world.ledger) : new Talk(made, own, round, 1 + color);
  // Parts of a communicator that was split differ in size: they draw alike within each, and differently from the others.
  await runParts(talk, prng.split(color), sync);
  await talk.settle();
  if (made !== undefined) await (sync && prng.chance(1, 2) ? made.freeSync() : made.free());
}

function split(comm: Communicator, prng: Prng): Promise<Communicator | null> {
  const colors = Array.from({ length: comm.size }, () => prng.below(2));
  const keys = Array.from({ length: comm.size }, () => prng.below(100));
  return comm.split(colors[comm.rank], keys[comm.rank]);
}

/** One after the other, or messages of several kinds and collectives at the same time. */
async function runParts(talk: Talk, prng: Prng, sync: boolean): Promise<void> {
  const isAtOnce = prng.chance(1, 3);
  const parts: MessagePart[] = Object.values(
    isAtOnce ? MESSAGE_PARTS : { ...MESSAGE_PARTS, ...LONE_PARTS, ...(sync ? BLOCKING_PARTS : {}) },
  );
  const drawn = Array.from({ length: prng.between(1, 4) }, () => prng.pick(parts)).slice(0, PARTS_MAX);
  const run = (part: MessagePart, i: number) => part(talk, prng.split(`part/${i}`), i * TAGS_OF_PART);
  const calls = (mayBlock: boolean) => collectives(talk, prng.split('collectives'), mayBlock);
  if (isAtOnce) await Promise.all([calls(false), ...drawn.map(run)]);
  else {
    for (const [i, part] of drawn.entries()) {
      await run(part, i);
      if (i === 0) await calls(sync);
    }
  }
  if (prng.chance(1, 3)) await objectCollectives(talk, prng.split('objects'));
}
