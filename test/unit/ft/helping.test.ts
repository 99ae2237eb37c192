// Processes that help successors: who says what to whom, by the pure machines of src/mpi/ft/helping-states.ts.
import { expect, test } from 'vitest';
import {
  decodeHelp,
  encodeHelp,
  HELP_WORD,
  HELPERS_MAX,
  HELPING_EDGES,
  HELPING_STATES,
  HelpersCall,
  HelpingRole,
  type HelpMessage,
} from '../../../src/mpi/ft/helping-states.ts';
import { Prng } from '../../../src/util/prng.ts';

test('messages come back as they were, and nothing else is taken for one', () => {
  const message: HelpMessage = { word: HELP_WORD.BEGIN, serial: 7, id: 81_920, members: [3, 9, 8] };
  const bytes = encodeHelp(message);
  expect(decodeHelp(bytes)).toEqual(message);
  expect(decodeHelp(bytes.subarray(1))).toBeUndefined();
  for (const [at, value] of [
    [0, 6],
    [1, -1],
    [2, 0.5],
    [3, HELPERS_MAX + 2],
    [4, Number.NaN],
  ]) {
    const words = new Float64Array(bytes.slice().buffer);
    words[at] = value;
    expect(decodeHelp(new Uint8Array(words.buffer)), `word ${at}`).toBeUndefined();
  }
});

test('every state has a sentence, and is reached', () => {
  expect(Object.keys(HELPING_EDGES)).toEqual(Object.keys(HELPING_STATES));
  for (const state of Object.keys(HELPING_STATES).slice(1)) expect(Object.values(HELPING_EDGES).flat()).toContain(state);
});

/** Some that stand by and some successors that ask, with messages in order on each way, and deaths, timeouts and calls in between. */
function play(seed: number): void {
  const prng = new Prng(seed);
  const standbys = Array.from({ length: 1 + prng.below(5) }, (_, i) => 10 + i);
  const ways = new Map<string, (() => void)[]>();
  const dead = new Set<number>();
  const post = (from: number, to: number, act: () => void): void => {
    const key = `${from}/${to}`;
    // Nothing comes any more from one that is known to be dead.
    ways.set(key, [...(ways.get(key) ?? []), () => void (!dead.has(to) && !dead.has(from) && act())]);
  };
  const calls = new Map<number, HelpersCall>();
  const teams = new Map<number, readonly number[]>();
  const roles = new Map<number, HelpingRole>();
  for (const own of standbys)
    roles.set(
      own,
      new HelpingRole(
        (to, message) => post(own, to, () => calls.get(to)?.take(own, message)),
        (_, members) => void teams.set(own, members),
      ),
    );
  for (const own of [1, 2, 3].slice(0, 1 + prng.below(3)))
    calls.set(
      own,
      new HelpersCall(own, 1 + prng.below(3), [...standbys].reverse(), (to, message) =>
        post(own, to, () => roles.get(to)?.take(own, message)),
      ),
    );
  const begun = new Set<number>();
  const begin = (): void => {
    for (const [own, call] of calls) {
      if (!call.isOver || begun.has(own) || dead.has(own)) continue;
      begun.add(own);
      expect(call.coming.length).toBeLessThanOrEqual(3);
      call.begin(own * 100, [own, ...call.coming]);
    }
  };
  begin();
  for (;;) {
    const open = [...ways].filter(([, list]) => list.length > 0);
    if (open.length === 0) break;
    const event = prng.below(37);
    if (event < 3) {
      const victim = prng.pick([...standbys, ...calls.keys()]);
      if (!dead.has(victim)) {
        dead.add(victim);
        for (const [own, role] of roles) if (!dead.has(own)) role.handleDeath(victim);
        for (const [own, call] of calls) if (!dead.has(own) && !begun.has(own)) call.handleDeath(victim);
      }
    } else if (event < 6) {
      const [own, call] = prng.pick([...calls]);
      if (!dead.has(own) && !call.isOver) call.handleTimeout();
    } else if (event < 7) {
      const [own, call] = prng.pick([...calls]);
      // Also where all have answered already, and before it has told them with whom.
      if (!dead.has(own) && !begun.has(own)) {
        begun.add(own);
        call.callOff();
      }
    } else if (event < 10) {
      const role = roles.get(prng.pick(standbys)) as HelpingRole;
      if (role.state !== 'PLACED') role.handlePlaced();
    } else prng.pick(open)[1].shift()?.();
    begin();
  }
  // Every call has come to its end, and nobody waits for a successor that does not know of it.
  for (const [own, call] of calls) if (!dead.has(own)) expect(call.isOver, `seed ${seed}: call of ${own}`).toBe(true);
  for (const [own, role] of roles) {
    if (dead.has(own)) continue;
    expect(role.state, `seed ${seed}: process ${own}`).not.toBe('ASKED');
    if (role.state === 'HELPING') expect(teams.get(own)).toContain(own);
  }
}

test('whoever dies, is late or is called in: every call ends, and nobody is left asked', () => {
  for (let seed = 0; seed < 2000; seed++) play(seed);
});
