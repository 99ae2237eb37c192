// The judgement of silence and the rhythm of beats, fed with synthetic TCP_INFO samples: no socket, no clock.
import { describe, expect, test } from 'vitest';
import {
  type BeatCircumstances,
  beatIntervalMs,
  LossMeter,
  SILENCE_EDGES,
  SILENCE_STATES,
  SilenceJudge,
  type SilenceState,
  type TcpSample,
} from '../../../src/btl/tcp/liveness.ts';

const LIMITS = { silentMs: 75, dataOnlyMs: 400 };

const sample = (values: Partial<TcpSample> = {}): TcpSample => ({
  unackedSegments: 0,
  notSentBytes: 0,
  ackedBytes: 0,
  rttUs: 100,
  minRttUs: 80,
  retransmissions: 0,
  duplicates: 0,
  ...values,
});

/** A rail whose beats go out every 20 ms and whose two connections answer as the test says; the clock is the test's. */
class Rail {
  judge = new SilenceJudge(LIMITS, 0);
  now = 0;
  data = sample();
  beat = sample();
  /** Told when `now` becomes SILENT. */
  silentAt: number | undefined;

  constructor(withBeats = true) {
    if (withBeats) this.judge.beatsBegin(0);
  }
  look(): SilenceState {
    const state = this.judge.look(this.data, this.beat, this.now);
    if (state === 'SILENT') this.silentAt ??= this.now;
    return state;
  }
  /** Looks every 5 ms, beats every 20; `each` sets what the kernel says before each look. */
  run(ms: number, each: (now: number) => void = () => {}, beats = true): void {
    for (const end = this.now + ms; this.now < end; ) {
      this.now += 5;
      each(this.now);
      this.look();
      if (beats && this.now % 20 === 0) {
        this.judge.beatSent(this.now);
        this.beat.unackedSegments++;
      }
    }
  }
  ackBeats(): void {
    this.beat.ackedBytes += this.beat.unackedSegments;
    this.beat.unackedSegments = 0;
  }
}

describe('losses', () => {
  const looks = (...samples: Partial<TcpSample>[]) => {
    const meter = new LossMeter();
    return samples.map((values) => meter.take(sample(values)));
  };

  test('what was sent again since the last look is a loss; what was before the first one is not', () => {
    expect(looks({ retransmissions: 3 }, { retransmissions: 3 }, { retransmissions: 4 }, { retransmissions: 4 })).toEqual([
      false,
      false,
      true,
      false,
    ]);
  });

  test('what the peer got twice was not lost', () => {
    expect(looks({}, { retransmissions: 1, duplicates: 1 }, { retransmissions: 3, duplicates: 1 })).toEqual([false, false, true]);
  });

  test('who fills a link loses some of it by right', () => {
    expect(looks({}, { retransmissions: 9, rttUs: 5081 }, { retransmissions: 10, rttUs: 5080 })).toEqual([false, false, true]);
  });

  test('a kernel that does not tell has lost nothing', () => {
    expect(looks({ retransmissions: -1 }, { retransmissions: -1, minRttUs: -1 })).toEqual([false, false]);
  });
});

describe('silence', () => {
  test('the table of states is whole, and nothing leaves SILENT', () => {
    expect(Object.keys(SILENCE_EDGES).sort()).toEqual(Object.keys(SILENCE_STATES).sort());
    expect(SILENCE_EDGES.SILENT).toEqual([]);
  });

  test('beats that are acknowledged in time: never silent, with an idle data connection', () => {
    const rail = new Rail();
    rail.run(5000, () => rail.ackBeats());
    expect(rail.silentAt).toBeUndefined();
    expect(rail.judge.state).toBe('WAITING');
    rail.ackBeats();
    expect(rail.look()).toBe('QUIET');
  });

  test('a black hole under bulk traffic: silent after the limit from the first beat that went into it, and no later', () => {
    const rail = new Rail();
    rail.data = sample({ unackedSegments: 40, ackedBytes: 1 });
    rail.run(1000, () => {
      rail.data.ackedBytes += 60_000;
      rail.ackBeats();
    });
    expect(rail.silentAt).toBeUndefined();
    rail.run(200);
    expect(rail.silentAt).toBeGreaterThanOrEqual(1000 + LIMITS.silentMs);
    expect(rail.silentAt).toBeLessThanOrEqual(1020 + LIMITS.silentMs + 5);
    expect(rail.judge.describe()).toMatch(/acknowledged nothing for \d+ ms .*40 segments of data, \d+ beats/);
  });

  test('one direction lost: segments still come in, the time since the last ACK stays young, acknowledged bytes do not rise', () => {
    // The sample has no field for what comes in: a look cannot be misled by it. Data and beats are on the way, neither is acknowledged.
    const rail = new Rail();
    rail.data = sample({ unackedSegments: 1, ackedBytes: 500 });
    rail.run(60);
    expect(rail.silentAt).toBeUndefined();
    rail.run(60);
    expect(rail.silentAt).toBeLessThanOrEqual(20 + LIMITS.silentMs + 5);
  });

  test('delayed acknowledgements of 40 ms are no silence', () => {
    const rail = new Rail();
    rail.run(5000, (now) => {
      if (now % 40 === 0) rail.ackBeats();
    });
    expect(rail.silentAt).toBeUndefined();
  });

  test('zero window: nothing in flight, bytes unsent, for a minute', () => {
    const rail = new Rail();
    rail.data = sample({ notSentBytes: 4_000_000, ackedBytes: 1_000_000 });
    rail.run(60_000, () => rail.ackBeats());
    expect(rail.silentAt).toBeUndefined();
  });

  test('zero window on the liveness connection too: busy', () => {
    const rail = new Rail();
    rail.data = sample({ notSentBytes: 4_000_000, ackedBytes: 1_000_000 });
    rail.beat = sample({ notSentBytes: 3, ackedBytes: 90 });
    for (let i = 0; i < 1000; i++) {
      rail.now += 20;
      rail.look();
      rail.judge.beatSent(rail.now);
      expect(rail.judge.state).toBe('BUSY');
    }
  });

  test('a busy peer whose rail then dies is noticed by the beats', () => {
    const rail = new Rail();
    rail.data = sample({ notSentBytes: 4_000_000, ackedBytes: 1_000_000 });
    rail.run(10_000, () => rail.ackBeats());
    rail.run(200);
    expect(rail.silentAt).toBeLessThanOrEqual(10_000 + 20 + LIMITS.silentMs + 5);
  });

  test('congested: beats stand in a full queue for longer than the limit, but data is acknowledged', () => {
    const rail = new Rail();
    rail.data = sample({ unackedSegments: 400, ackedBytes: 1 });
    rail.run(5000, (now) => {
      rail.data.ackedBytes += 60_000;
      if (now % 500 === 0) rail.ackBeats();
    });
    expect(rail.silentAt).toBeUndefined();
  });

  test('congested the other way: data waits for its retransmission timer, beats go on', () => {
    const rail = new Rail();
    rail.data = sample({ unackedSegments: 12, ackedBytes: 1000 });
    rail.run(1000, () => rail.ackBeats());
    expect(rail.silentAt).toBeUndefined();
  });

  test('a long path has longer to answer: twice its round trip', () => {
    const rail = new Rail();
    rail.data = sample({ rttUs: 80_000 });
    rail.beat = sample({ rttUs: 80_000 });
    rail.run(220);
    expect(rail.silentAt).toBeUndefined();
    rail.run(100);
    expect(rail.silentAt).toBeGreaterThanOrEqual(20 + LIMITS.silentMs + 160);
  });

  test('a pause of our own: the first look decides nothing, an acknowledgement during the pause is seen', () => {
    const rail = new Rail();
    rail.run(1000, () => rail.ackBeats());
    // The alive time hardly moves in a pause; even if it did, nothing is concluded before a fresh look.
    rail.now += 60_000;
    rail.judge.paused(rail.now);
    expect(rail.look()).toBe('WAITING');
    rail.now += 5;
    rail.ackBeats();
    expect(rail.look()).toBe('QUIET');
    expect(rail.silentAt).toBeUndefined();
  });

  test('a pause of our own while the rail died: noticed the limit later', () => {
    const rail = new Rail();
    rail.run(1000, () => rail.ackBeats());
    rail.now += 60_000;
    rail.judge.paused(rail.now);
    const back = rail.now;
    rail.run(200);
    expect(rail.silentAt).toBeGreaterThanOrEqual(back + LIMITS.silentMs);
    expect(rail.silentAt).toBeLessThanOrEqual(back + LIMITS.silentMs + 5);
  });

  test('a process that pauses at every turn notices all the same: only the first pause is forgiven', () => {
    const rail = new Rail();
    rail.run(1000, () => rail.ackBeats());
    for (let i = 0; i < 4; i++) {
      // A pause of any length adds 50 ms to the alive time.
      rail.now += 50;
      rail.judge.paused(rail.now);
      rail.look();
      rail.judge.beatSent(rail.now);
    }
    expect(rail.silentAt).toBeLessThanOrEqual(1000 + 50 + LIMITS.silentMs + 50);
    // And the next quiet episode is forgiven one again.
    const other = new Rail();
    for (let i = 0; i < 100; i++) {
      other.now += 50;
      other.judge.paused(other.now);
      other.ackBeats();
      other.look();
      other.judge.beatSent(other.now);
      other.beat.unackedSegments++;
    }
    expect(other.silentAt).toBeUndefined();
  });

  test('without a liveness connection the data connection tells, with room for its retransmission timer', () => {
    const rail = new Rail(false);
    rail.data = sample({ unackedSegments: 3, ackedBytes: 10 });
    rail.run(390, () => {}, false);
    expect(rail.silentAt).toBeUndefined();
    rail.run(100, () => {}, false);
    expect(rail.silentAt).toBeGreaterThanOrEqual(LIMITS.dataOnlyMs);
    const blocked = new Rail(false);
    blocked.data = sample({ notSentBytes: 100_000, ackedBytes: 10 });
    blocked.run(60_000, () => {}, false);
    expect(blocked.judge.state).toBe('BUSY');
  });

  test('a liveness connection that breaks takes its unanswered beats with it', () => {
    const rail = new Rail();
    rail.run(1000, () => rail.ackBeats());
    rail.judge.beatsEnd();
    rail.run(1000, () => {}, false);
    expect(rail.silentAt).toBeUndefined();
    expect(rail.judge.state).toBe('QUIET');
  });
});

describe('the rhythm of beats', () => {
  const rhythm = { beatMs: 20, idleMs: 1000 };
  const at = (values: Partial<BeatCircumstances>): number =>
    beatIntervalMs(rhythm, { active: true, state: 'QUIET', unread: 0, activeRails: 2, rails: 2, ...values });

  test('fast with traffic, slow without', () => {
    expect(at({})).toBe(20);
    expect(at({ active: false })).toBe(1000);
  });

  test('an idle beat that is not acknowledged gets a second one within the limit', () => {
    expect(at({ active: false, state: 'WAITING' })).toBeGreaterThan(40);
    expect(at({ active: false, state: 'WAITING' })).toBeLessThan(LIMITS.silentMs);
  });

  test('slower the more beats the peer has not read, so that an hour of computing fills no buffer', () => {
    let ms = 0;
    let unread = 0;
    while (ms < 3_600_000) {
      ms += at({ unread });
      unread++;
    }
    expect(unread).toBeLessThan(5000);
    expect(at({ unread: 10 })).toBe(20);
  });

  test('bounded with many rails', () => {
    expect(1000 / at({ activeRails: 256, rails: 256 })).toBeLessThanOrEqual(1000 / 256 + 0.01);
    expect(256 * (1000 / at({ active: false, activeRails: 0, rails: 256 }))).toBeLessThanOrEqual(50.1);
  });
});
