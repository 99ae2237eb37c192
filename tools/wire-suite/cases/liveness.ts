// Cases of §13: alive time, and rails and peers that say nothing for a while.
import { FRAME_PROBE_ANSWER } from '../../../src/btl/base/frame-hdr.ts';
import { PACKET } from '../../../src/pml/hdr.ts';
import type { Case } from '../case.ts';
import { Session, sleep } from '../session.ts';

/** So long alive times are compared with the clock, and so much may be rounding, and the turn in which the first answer was written. */
const ALIVE_WATCHED_MS = 300;
const ALIVE_SLACK_MS = 60;
/** Two and a half times as long as a rail may be silent by default. */
const SILENCE_MS = 1000;

export const LIVENESS_CASES: readonly Case[] = [
  {
    name: 'alive time goes no faster than the clock',
    group: 'framing',
    needs: ['accept'],
    clauses: ['LN-3', 'FR-7'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      // The endpoint wrote its answer between the question and our reading of it: what is between two readings bounds what may be between
      // two answers from both sides, but for the rounding and what a turn may leave out.
      const told = async (): Promise<{ aliveMs: number; askedMs: number; heardMs: number }> => {
        const { id, bytes } = rail.probeFrame();
        const askedMs = performance.now();
        rail.write(bytes);
        await session.until(() => rail.hasAnswered(id) || rail.closed);
        const answer = rail.own.find(({ kind, frameNumber }) => kind === FRAME_PROBE_ANSWER && frameNumber === id);
        t.must('PB-1', answer !== undefined, 'a probe is answered');
        return { aliveMs: answer?.aliveMs ?? 0, askedMs, heardMs: performance.now() };
      };
      const first = await told();
      const from = first.askedMs;
      // Asked all the time, so that the endpoint takes turns all the time.
      let last = first;
      while (last.heardMs - from < ALIVE_WATCHED_MS && !rail.closed) {
        await sleep(5);
        last = await told();
        const grewMs = (last.aliveMs - first.aliveMs) | 0;
        const tookMs = last.heardMs - from;
        t.must('LN-3', grewMs <= tookMs + ALIVE_SLACK_MS, `alive time grew by ${grewMs} ms in at most ${Math.round(tookMs)} ms`);
      }
      const grewMs = (last.aliveMs - first.aliveMs) | 0;
      t.check('LN-3', grewMs > 0, `alive time grew by ${grewMs} ms while the endpoint answered for ${ALIVE_WATCHED_MS} ms`);
      t.check('FR-7', true, 'and went back at no time');
    },
  },
  {
    name: 'a rail that says nothing is not judged',
    group: 'framing',
    needs: ['accept'],
    clauses: ['LN-1'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      await session.settle();
      // Longer than implementations wait for a rail; questions of the endpoint are answered.
      await sleep(SILENCE_MS);
      t.check('LN-1', !rail.closed, `a rail without traffic lives after ${SILENCE_MS} ms`);
      const { id, bytes } = rail.probeFrame();
      rail.write(bytes);
      t.check('LN-1', await session.until(() => rail.hasAnswered(id) || rail.closed), 'and answers');
      t.check('LN-1', !rail.closed, 'in the same epoch');
    },
  },
  {
    name: 'a peer that is busy is not a peer that is gone',
    group: 'framing',
    needs: ['accept', 'send'],
    clauses: ['LN-4', 'LN-5'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      await session.settle();
      rail.autoProbe = false;
      rail.autoCount = false;
      const request = await session.sendFrom(9000);
      await session.expect('SD-2', PACKET.RNDV, 'a rendezvous, which is not counted');
      // The process behind this rail computes: it reads nothing, says nothing, and its alive time stands.
      await sleep(SILENCE_MS);
      t.check('LN-4', !rail.closed, `a rail whose peer says nothing at all lives after ${SILENCE_MS} ms`);
      const state = await session.test(request);
      t.check('LN-5', !state.done, `the send waits (${state.error ?? 'no error'})`);
      rail.drop();
      await sleep(t.config.quietMs);
      const answer = await session.tryConnect(0, 2);
      t.check('LN-5', answer === 'welcome', `a rail's end does not end the peer: a new epoch is answered by ${answer}`);
    },
  },
];
