// The test list of Open MPI's BFO, row by row (rows 1 to 8 here, 9 to 15 in bfo-rows-more.ts): every kind of frame is lost, arrives
// unreported, or arrives by half; once and again during the recovery; over two, three and five rails.
import { PACKET, type PacketType } from '../../../src/pml/hdr.ts';
import type { PacketFilter, RailSpec } from '../../../tools/sim/fabric.ts';
import {
  capture,
  cutAgain,
  cutAt,
  FATES,
  type Fate,
  type Lab,
  replay,
  Scenario,
  type ScenarioCase,
  scenarioRails,
} from '../../../tools/sim/scenario.ts';
import type { WireItem } from '../../../tools/sim/wire.ts';

export type Transfer = 'copy' | 'put' | 'get';

const ABILITY: Record<Transfer, Partial<RailSpec>> = { copy: {}, put: { canPut: true }, get: { canGet: true } };

export function transferRails(count: number, transfer: Transfer, more: Partial<RailSpec> = {}): Partial<RailSpec>[] {
  return scenarioRails(count, { ...ABILITY[transfer], ...more });
}

/** The message in question between two small ones of the same tag, so that its place in the order is seen, too. */
export function sandwich(s: Scenario, bytes: number, sync = false): void {
  for (const length of [10, bytes, 20]) s.recv(Math.max(length, 16));
  s.send(10);
  s.send(bytes, 0, 0, 1, sync);
  s.send(20);
}

interface Target {
  label: string;
  what: PacketType | WireItem['kind'];
  transfer: Transfer;
  bytes: number;
  sync?: boolean;
  filter?: PacketFilter;
  /** Which one, by whole frames. */
  nth?: number;
  /** Pieces of a frame that are followed by another, for the half that arrives. */
  inner?: number;
  fates: readonly Fate[];
}

const ALL = Object.keys(FATES) as Fate[];
const WHOLE: readonly Fate[] = ['not arrived', 'arrived'];

/** 6000 bytes: 256 with the RNDV, the rest in six fragments, or puts, on the grid of 1024. */
const LONG = 6000;

const TARGETS: readonly Target[] = [
  { label: 'MATCH', what: PACKET.MATCH, transfer: 'copy', bytes: 1000, nth: 2, inner: 0, fates: ALL },
  { label: 'MATCH without data', what: PACKET.MATCH, transfer: 'copy', bytes: 0, nth: 2, fates: WHOLE },
  { label: 'RNDV', what: PACKET.RNDV, transfer: 'copy', bytes: LONG, fates: ALL },
  { label: 'RNDV of a short synchronous send', what: PACKET.RNDV, transfer: 'copy', bytes: 300, sync: true, fates: ALL },
  { label: 'RGET', what: PACKET.RGET, transfer: 'get', bytes: LONG, fates: WHOLE },
  { label: 'ACK', what: PACKET.ACK, transfer: 'copy', bytes: LONG, fates: WHOLE },
  { label: 'ACK of a short synchronous send', what: PACKET.ACK, transfer: 'copy', bytes: 300, sync: true, fates: WHOLE },
  { label: 'ACK that announces PUTs', what: PACKET.ACK, transfer: 'put', bytes: LONG, fates: WHOLE },
  { label: 'PUT first', what: PACKET.PUT, transfer: 'put', bytes: LONG, fates: WHOLE },
  { label: 'PUT second', what: PACKET.PUT, transfer: 'put', bytes: LONG, nth: 2, fates: WHOLE },
  { label: 'FRAG first', what: PACKET.FRAG, transfer: 'copy', bytes: LONG, inner: 7, fates: ALL },
  { label: 'FRAG middle', what: PACKET.FRAG, transfer: 'copy', bytes: LONG, nth: 3, inner: 7, fates: ALL },
  { label: 'FRAG last', what: PACKET.FRAG, transfer: 'copy', bytes: LONG, nth: 6, inner: 7, fates: ALL },
  { label: 'write first', what: 'put', transfer: 'put', bytes: LONG, inner: 7, fates: ALL },
  { label: 'write middle', what: 'put', transfer: 'put', bytes: LONG, nth: 3, inner: 7, fates: ALL },
  { label: 'write confirmation', what: 'putAck', transfer: 'put', bytes: LONG, nth: 2, fates: WHOLE },
  { label: 'FIN to the receiver', what: PACKET.FIN, transfer: 'put', bytes: LONG, filter: { from: 0 }, fates: WHOLE },
  { label: 'FIN to the receiver, last', what: PACKET.FIN, transfer: 'put', bytes: LONG, nth: 6, filter: { from: 0 }, fates: WHOLE },
  { label: 'read request', what: 'get', transfer: 'get', bytes: LONG, nth: 2, fates: WHOLE },
  { label: 'read data first', what: 'getData', transfer: 'get', bytes: LONG, inner: 7, fates: ALL },
  { label: 'read data middle', what: 'getData', transfer: 'get', bytes: LONG, nth: 3, inner: 7, fates: ALL },
  { label: 'FIN to the sender', what: PACKET.FIN, transfer: 'get', bytes: LONG, filter: { from: 1 }, fates: WHOLE },
];

const RAILS = [2, 3, 5] as const;

function* row1(): Iterable<ScenarioCase> {
  for (const target of TARGETS) {
    for (const fate of target.fates) {
      for (const rails of RAILS) {
        for (const again of [undefined, 'lose', 'pass'] as const) {
          const name = `bfo 9.1 ${target.label} ${fate}, ${rails} rails${again === undefined ? '' : `, a second failure in the recovery (${again === 'lose' ? 'lost' : 'unreported'})`}`;
          yield { name, run: (lab) => runTarget(lab, target, fate, rails, again) };
        }
      }
      // A single rail has a single window.
      if (target.label === 'PUT second') continue;
      yield { name: `bfo 9.1 ${target.label} ${fate}, the only rail, which comes back`, run: (lab) => runTarget(lab, target, fate, 1) };
    }
  }
}

function runTarget(lab: Lab, target: Target, fate: Fate, rails: number, again?: 'lose' | 'pass'): void {
  const s = new Scenario(lab, { rails: transferRails(rails, target.transfer) });
  const whole = target.nth ?? 1;
  const nth = fate === 'half arrived' ? (whole - 1) * (target.inner ?? 1) + 1 : whole;
  const hook = cutAt(s, target.what, fate, target.filter, nth);
  if (rails === 1) s.whenever({}, () => void mendSoon(s, hook.hits >= nth));
  if (again !== undefined) cutAgain(s, again);
  sandwich(s, target.bytes, target.sync);
  s.finish();
}

const mended = new WeakSet<Scenario>();
function mendSoon(s: Scenario, hit: boolean): void {
  if (!hit || mended.has(s)) return;
  mended.add(s);
  for (const link of s.fabric.links()) s.fabric.at(s.fabric.nowUs + 50_000, () => s.fabric.mend(link));
}

// ---------------------------------------------------------------- 9.2

interface Recovery {
  label: string;
  type: PacketType;
  transfer: Transfer;
  /** The first failure, after which this frame is sent. */
  first(s: Scenario): void;
}

const RECOVERIES: readonly Recovery[] = [
  {
    label: 'RNDVRESTARTNOTIFY',
    type: PACKET.RNDVRESTARTNOTIFY,
    transfer: 'copy',
    first: (s) => cutAt(s, PACKET.FRAG, 'not arrived', {}, 2),
  },
  { label: 'RNDVRESTARTACK', type: PACKET.RNDVRESTARTACK, transfer: 'copy', first: (s) => cutAt(s, PACKET.FRAG, 'half arrived', {}, 10) },
  { label: 'RNDVRESTARTNACK', type: PACKET.RNDVRESTARTNACK, transfer: 'copy', first: (s) => cutAt(s, PACKET.FRAG, 'arrived', {}, 6) },
  { label: 'RECVERRNOTIFY', type: PACKET.RECVERRNOTIFY, transfer: 'get', first: (s) => cutAt(s, 'getData', 'half arrived', {}, 10) },
  { label: 'RAILDOWN', type: PACKET.RAILDOWN, transfer: 'copy', first: (s) => cutAt(s, PACKET.FRAG, 'not arrived', {}, 2) },
];

function* row2(): Iterable<ScenarioCase> {
  for (const recovery of RECOVERIES) {
    for (const rails of RAILS) {
      for (const fate of WHOLE) {
        yield {
          name: `bfo 9.2 ${recovery.label} ${fate === 'arrived' ? 'arrived unreported, so repeated' : 'lost'}, ${rails} rails`,
          run(lab) {
            const s = new Scenario(lab, { rails: transferRails(rails, recovery.transfer) });
            recovery.first(s);
            cutAt(s, recovery.type, fate);
            if (rails === 2) s.whenever({ type: recovery.type }, () => void mendSoon(s, true));
            s.requireLost(2);
            sandwich(s, LONG);
            s.finish();
          },
        };
      }
      yield {
        name: `bfo 9.2 ${recovery.label} twice, and once more when all is over, ${rails} rails`,
        run(lab) {
          const s = new Scenario(lab, { rails: transferRails(rails, recovery.transfer) });
          recovery.first(s);
          const late = capture(s, { type: recovery.type });
          sandwich(s, LONG);
          s.until('the frame came', () => late.header !== undefined);
          replay(s, late);
          s.world.mustFinish(60_000);
          replay(s, late);
          replay(s, late);
          s.finish();
        },
      };
    }
    yield {
      name: `bfo 9.2 ${recovery.label} of the first restart, late by an epoch`,
      run(lab) {
        // RESTARTNACK ends the message: its late copy meets the next message in the same slot instead (9.7).
        const s = new Scenario(lab, { rails: transferRails(3, recovery.transfer) });
        recovery.first(s);
        const late = capture(s, { type: recovery.type });
        let replayed = false;
        s.whenever({ stage: 'arrive', type: PACKET.FRAG, piece: 'first' }, ({ link }) => {
          const restarts = s.count('restarts');
          const answers = s.count('restartAcks') + s.count('restartNacks');
          if (restarts === 1 && answers === 1) {
            s.fabric.cut(link);
            for (const each of s.fabric.links()) s.fabric.at(s.fabric.nowUs + 20_000, () => s.fabric.mend(each));
            return 'lose';
          }
          const ended = recovery.type === PACKET.RNDVRESTARTNACK;
          if (restarts >= 2 && (ended || s.count('restartAcks') >= 2) && !replayed && late.header !== undefined) {
            replayed = true;
            replay(s, late);
          }
          return 'pass';
        });
        s.require('the late copy was handed up in a later epoch', () => replayed);
        sandwich(s, LONG);
        if (recovery.type === PACKET.RNDVRESTARTNACK) {
          s.recv(3 * LONG);
          s.send(3 * LONG);
        }
        s.finish();
      },
    };
  }
}

// ---------------------------------------------------------------- 9.3

const SIDES = ['both in the same tick', 'only the sender', 'only the receiver', 'neither: a silent loss'] as const;

function* row3(): Iterable<ScenarioCase> {
  const targets = TARGETS.filter(({ label }) =>
    ['MATCH', 'RNDV', 'RGET', 'ACK', 'FRAG middle', 'write middle', 'read data middle'].includes(label),
  );
  for (const target of targets) {
    for (const side of SIDES) {
      for (const fate of WHOLE) {
        yield {
          name: `bfo 9.3 ${target.label} ${fate}; ${side} detects it`,
          run(lab) {
            const silent = side === SIDES[3];
            const rails = transferRails(3, target.transfer, {
              detectUsMin: 2000,
              detectUsMax: 2000,
              ...(silent ? { liveness: 'siblings' as const } : {}),
            });
            const s = new Scenario(lab, { rails });
            s.on(
              { stage: 'arrive', ...(typeof target.what === 'string' ? { kind: target.what } : { type: target.what }), ...target.filter },
              ({ link }) => {
                if (side === SIDES[1]) s.fabric.onlyOtherSideNotices(link, 1);
                if (side === SIDES[2]) s.fabric.onlyOtherSideNotices(link, 0);
                return 'pass';
              },
            );
            cutAt(s, target.what, fate, target.filter, target.nth);
            sandwich(s, target.bytes, target.sync);
            s.finish();
          },
        };
      }
    }
  }
}

// ---------------------------------------------------------------- 9.4

function* row4(): Iterable<ScenarioCase> {
  for (const rails of RAILS) {
    yield {
      name: `bfo 9.4 a failure with envelopes, answers and data queued, ${rails} rails`,
      run(lab) {
        const s = new Scenario(lab, { rails: scenarioRails(rails, { bytesPerMs: 200 }) });
        const queued = { envelopes: 0, streams: 0, control: 0 };
        const look = () => {
          const to = s.pml(0).peer(1);
          queued.envelopes = Math.max(queued.envelopes, to.envelopes.size);
          queued.streams = Math.max(queued.streams, to.streams.size);
        };
        s.on(
          { stage: 'arrive', type: PACKET.MATCH },
          ({ link }) => {
            look();
            s.fabric.cut(link);
            return 'lose';
          },
          9,
        );
        s.on(
          { stage: 'arrive', type: PACKET.FRAG },
          ({ link }) => {
            look();
            s.fabric.cut(link);
            for (const each of s.fabric.links()) s.fabric.at(s.fabric.nowUs + 20_000, () => s.fabric.mend(each));
            return 'lose';
          },
          3,
        );
        for (let i = 0; i < 30; i++) s.recv(8000);
        for (let i = 0; i < 30; i++) s.send(i % 3 === 0 ? 8000 : 1000);
        s.require('envelopes were queued at a failure', () => queued.envelopes > 0);
        s.require('messages with data to send were queued at a failure', () => queued.streams > 0);
        s.finish();
      },
    };
    yield {
      name: `bfo 9.4 a failure with nothing but refusals for room (BUSY), ${rails} rails`,
      run(lab) {
        const s = new Scenario(lab, { rails: scenarioRails(rails, { busyPer10k: 5000, busyUsMax: 3000 }) });
        cutAt(s, PACKET.FRAG, 'not arrived', {}, 4);
        for (let i = 0; i < 12; i++) s.recv(6000);
        for (let i = 0; i < 12; i++) s.send(i % 2 === 0 ? 6000 : 700);
        s.finish();
      },
    };
  }
}

// ---------------------------------------------------------------- 9.5

function* row5(): Iterable<ScenarioCase> {
  for (const transfer of ['copy', 'put', 'get'] as const) {
    for (const rails of RAILS) {
      for (const dead of ['one rail', 'every rail'] as const) {
        yield {
          name: `bfo 9.5 a long message waits unexpected (${transfer}), ${dead} of ${rails} dies, then the receive is posted`,
          run(lab) {
            const s = new Scenario(lab, { rails: transferRails(rails, transfer) });
            s.send(LONG);
            s.run(20);
            s.require('it waited', () => s.count('matchesUnexpected') === 1);
            for (const link of s.fabric.links()) if (dead === 'every rail' || link.linkNo === 0) s.fabric.cut(link);
            s.run(20);
            if (dead === 'every rail') {
              for (const link of s.fabric.links()) s.fabric.mend(link);
              s.run(2000);
              // The windows of the RGET died with their rails: nothing can be read.
              if (transfer === 'get') s.require('nothing was read', () => s.count('gets') === 0);
            }
            s.recv(LONG);
            s.requireLost();
            s.finish();
          },
        };
      }
    }
  }
}

// ---------------------------------------------------------------- 9.6

function* row6(): Iterable<ScenarioCase> {
  for (const rails of RAILS) {
    yield {
      name: `bfo 9.6 the receiver is complete, the sender does not know: RESTARTNACK, ${rails} rails`,
      run(lab) {
        const s = new Scenario(lab, { rails: scenarioRails(rails) });
        cutAt(s, PACKET.FRAG, 'arrived', {}, 6);
        sandwich(s, LONG);
        s.requireCount('restartNacks');
        s.finish();
      },
    };
    yield {
      name: `bfo 9.6 the sender's data are all written, the receiver does not know: the FIN is lost, ${rails} rails`,
      run(lab) {
        const s = new Scenario(lab, { rails: transferRails(rails, 'put') });
        let owing = false;
        s.on(
          { stage: 'arrive', type: PACKET.FIN, from: 0 },
          ({ link }) => {
            owing = [...s.pml(0).internals.core.sends.values()].some(({ state }) => state === 'OWING');
            s.fabric.cut(link);
            return 'lose';
          },
          6,
        );
        sandwich(s, LONG);
        s.require('the sender had nothing left but its FINs', () => owing);
        s.finish();
      },
    };
    yield {
      name: `bfo 9.6 the receiver has read all, the sender does not know: the FIN of an RGET is lost, ${rails} rails`,
      run(lab) {
        const s = new Scenario(lab, { rails: transferRails(rails, 'get') });
        cutAt(s, PACKET.FIN, 'not arrived', { from: 1 });
        sandwich(s, LONG);
        s.finish();
      },
    };
  }
}

// ---------------------------------------------------------------- 9.7

function* row7(): Iterable<ScenarioCase> {
  const late: { label: string; type: PacketType; transfer: Transfer; restarted?: boolean }[] = [
    { label: 'ACK', type: PACKET.ACK, transfer: 'copy' },
    { label: 'PUT', type: PACKET.PUT, transfer: 'put' },
    { label: 'FIN', type: PACKET.FIN, transfer: 'put' },
    { label: 'FIN of an RGET', type: PACKET.FIN, transfer: 'get' },
    { label: 'RNDVRESTARTNOTIFY', type: PACKET.RNDVRESTARTNOTIFY, transfer: 'copy', restarted: true },
    { label: 'RNDVRESTARTACK', type: PACKET.RNDVRESTARTACK, transfer: 'copy', restarted: true },
  ];
  for (const { label, type, transfer, restarted } of late) {
    for (const uses of [1, 100, 65_536]) {
      yield {
        name: `bfo 9.7 a late ${label} after its slot was used ${uses} times more${uses > 100 ? ' (generations set forward)' : ''}`,
        run(lab) {
          const s = new Scenario(lab, { rails: transferRails(3, transfer) });
          if (restarted) cutAt(s, PACKET.FRAG, 'not arrived', {}, 2);
          const captured = capture(s, { type });
          s.recv(LONG);
          s.send(LONG);
          s.world.mustFinish(60_000);
          s.until('all slots are free', () => s.pml(0).internals.core.sends.size === 0 && s.pml(1).internals.core.recvs.size === 0);
          if (uses > 100) {
            for (const rank of [0, 1]) {
              const { core } = s.pml(rank).internals;
              for (const table of [core.sends, core.recvs]) {
                const { generations } = table as unknown as { generations: number[] };
                for (let slot = 0; slot < generations.length; slot++) generations[slot] += uses;
              }
            }
          }
          for (let i = 0; i < Math.min(uses, 100); i++) {
            s.recv(LONG);
            s.send(LONG);
            if (i === Math.min(uses, 100) - 1) {
              s.until('the slot is in use again', () => s.pml(0).internals.core.sends.size > 0 && s.pml(1).internals.core.recvs.size > 0);
              replay(s, captured);
            }
            s.world.mustFinish(60_000);
          }
          s.requireCount(type === PACKET.RNDVRESTARTNOTIFY ? 'restarts' : 'controlStale');
          s.finish();
        },
      };
    }
  }
}

// ---------------------------------------------------------------- 9.8

function* row8(): Iterable<ScenarioCase> {
  for (const [transfer, what] of [
    ['copy', PACKET.FRAG],
    ['put', 'put'],
  ] as const) {
    yield {
      name: `bfo 9.8 one message restarted 130 times and more (${transfer})`,
      run(lab) {
        const s = new Scenario(lab, { rails: transferRails(2, transfer) });
        const cuts = 140;
        let done = 0;
        s.whenever({ stage: 'arrive', ...(typeof what === 'string' ? { kind: what } : { type: what }) }, ({ link }) => {
          if (done >= cuts) return 'pass';
          done++;
          s.fabric.cut(link);
          s.fabric.at(s.fabric.nowUs + 10_000, () => s.fabric.mend(link));
          return 'lose';
        });
        sandwich(s, LONG);
        s.requireCount('restarts', 130);
        s.finish(600_000);
      },
    };
  }
}

export const bfoRows: readonly ScenarioCase[] = [...row1(), ...row2(), ...row3(), ...row4(), ...row5(), ...row6(), ...row7(), ...row8()];
