// The model of a job: what the launcher hears becomes ranks, rails, events and bytes over time, and a rank cannot make it grow.
import { describe, expect, test } from 'vitest';
import { ProcessControl } from '../../../tools/dashboard/control.ts';
import type { RailView } from '../../../tools/dashboard/messages.ts';
import { EVENTS_MAX } from '../../../tools/dashboard/model.ts';
import { countersOf, makeModel, makeRunningModel, railReport, report, TestClock } from './telemetry-examples.ts';

const typesOf = (model: ReturnType<typeof makeModel>) => model.log.since(0).map(({ type }) => type);
const railView = (model: ReturnType<typeof makeModel>, key: string) => model.rails.get(key)?.view as RailView;

describe('job model', () => {
  test('the life of a job', () => {
    const clock = new TestClock();
    const model = makeModel(clock);
    model.spawned(0, 100);
    expect(model.ranks[0].view).toMatchObject({ phase: 'STARTING', pid: 100, heardMs: -1 });
    clock.ms = 400;
    model.joined(0, { incarnation: 1, pid: 100, hostId: 'h' });
    expect(model.ranks[0].view).toMatchObject({ phase: 'JOINED', host: 'h', heardMs: 400 });
    model.finalized(0);
    model.exited(0, { code: 0, signal: '', finalized: true, lost: false });
    model.exited(1, { code: undefined, signal: 'SIGKILL', finalized: false, lost: false });
    expect(model.ranks.map(({ view }) => view.exit)).toEqual([{ code: 0 }, { signal: 'SIGKILL' }]);
    clock.ms = 900;
    model.ended(137, 'rank 1 was killed');
    expect(model.job.ended).toEqual({ atMs: 900, exitCode: 137, failure: 'rank 1 was killed' });
    expect(typesOf(model)).toEqual(['job-started', 'rank-joined', 'rank-finalized', 'rank-exited', 'rank-exited', 'job-ended']);
  });

  test('a rank on another host of which nothing is known any more is lost, and did not exit with a code', () => {
    const model = makeModel(new TestClock());
    model.exited(1, { code: undefined, signal: '', finalized: false, lost: true });
    expect(model.ranks[1].view).toMatchObject({ phase: 'EXITED', exit: {} });
    expect(model.log.since(0).at(-1)).toMatchObject({ type: 'rank-exited', text: 'rank 1 is lost: nothing is known of its end' });
  });

  test('processes die, and one that stood by takes a place', () => {
    const model = makeModel(new TestClock(), { size: 4, spares: 1, survivesFailures: true });
    for (let rank = 0; rank < 4; rank++) model.joined(rank, { incarnation: 1, pid: 100 + rank, hostId: 'h' });
    expect(model.ranks.map(({ view }) => view.place)).toEqual([0, 1, 2, null]);
    model.standby(3, true, 0);
    model.exited(1, { code: undefined, signal: 'SIGKILL', finalized: false, lost: false, died: true });
    model.standby(3, false, 1);
    model.exited(2, { code: 1, signal: '', finalized: false, lost: false });
    expect(model.ranks[3].view.place).toBe(1);
    // An error of the program is no death.
    expect(model.ranks.map(({ view }) => view.died)).toEqual([false, true, false, false]);
    expect(model.log.since(0).map(({ text }) => text)).toEqual([
      'the job of 3 ranks, and of 1 more process that stands by, is started',
      ...[100, 101, 102, 103].map((pid, rank) => `rank ${rank} (pid ${pid}) has joined`),
      'process 3 stands by',
      'rank 1 was killed by SIGKILL',
      'process 3 has taken the place of rank 1',
      'rank 2 has exited with code 1',
    ]);
    expect(typesOf(model).slice(-4)).toEqual(['standby-waits', 'rank-died', 'standby-called', 'rank-exited']);
  });

  test('only the living can be killed, and only where the others go on', async () => {
    const killed: number[] = [];
    const model = makeModel(new TestClock(), { size: 3, spares: 1, survivesFailures: true });
    const control = new ProcessControl(model, (rank) => killed.push(rank));
    expect(control.targets()).toEqual([]);
    for (let rank = 0; rank < 3; rank++) model.joined(rank, { incarnation: 1, pid: 100 + rank, hostId: 'h' });
    await control.apply('process-1', 'kill');
    model.exited(1, { code: undefined, signal: 'SIGKILL', finalized: false, lost: false, died: true });
    model.standby(2, false, 1);
    const target = (id: string, label: string, state: string) => ({ id, label, state, actions: ['kill'], rails: [] });
    expect(control.targets()).toEqual([
      target('process-0', 'process 0', 'alive'),
      target('process-1', 'process 1', 'dead'),
      target('process-2', 'process 2, now rank 1', 'alive'),
    ]);
    await expect(control.apply('process-1', 'kill')).rejects.toThrow('"process-1": there is nothing of that name to kill now');
    await expect(control.apply('process-0', 'pull')).rejects.toThrow('nothing of that name to pull now');
    expect(killed).toEqual([1]);
    const ordinary = makeRunningModel(new TestClock());
    expect(new ProcessControl(ordinary, (rank) => killed.push(rank)).targets()).toEqual([]);
  });

  test('reports become rails, with the bytes of each at their time', () => {
    const model = makeRunningModel(new TestClock());
    expect([...model.rails.keys()].sort()).toEqual(['0 1 0', '0 1 1', '1 0 0', '1 0 1']);
    expect(railView(model, '0 1 1')).toMatchObject({ rank: 0, peer: 1, rail: 1, transport: 'tcp', key: 'tcp:lo-lo#1', state: 'UP' });
    const sent = model.history.all().find(({ key }) => key === 'sent 0 1 0');
    expect(sent).toEqual({ key: 'sent 0 1 0', first: 0, bytes: [0, 1_000_000, 1_000_000, 0] });
  });

  test('a rail that a report leaves out has not moved: its line goes on at zero', () => {
    const clock = new TestClock();
    const model = makeRunningModel(clock);
    clock.ms = 2000;
    model.telemetry(0, report(2000, []));
    expect(model.history.all().find(({ key }) => key === 'sent 0 1 0')?.bytes).toEqual([0, 1_000_000, 1_000_000, 0, 0, 0, 0, 0, 0]);
  });

  test('a rank that computed for five seconds leaves five seconds of its average', () => {
    const clock = new TestClock();
    const model = makeRunningModel(clock);
    clock.ms = 5750;
    model.telemetry(0, report(5750, [railReport(1, 0, { counters: countersOf({ payloadBytesSent: 22_000_000 }) })]));
    const sent = model.history.all().find(({ key }) => key === 'sent 0 1 0');
    expect(sent?.bytes.slice(3)).toEqual([...Array.from({ length: 20 }, () => 1_000_000), 0]);
  });

  test('time on the way does not move what a rank did: its own clock says when', () => {
    const clock = new TestClock();
    const model = makeRunningModel(clock);
    // Made at 1000, and delayed by a slow launcher to 4000.
    clock.ms = 4000;
    model.telemetry(0, report(1000, [railReport(1, 0, { counters: countersOf({ payloadBytesSent: 3_000_000 }) })]));
    const bytes = model.history.all().find(({ key }) => key === 'sent 0 1 0')?.bytes ?? [];
    // But for the little that its clock might have lost meanwhile.
    expect(bytes[3]).toBeGreaterThan(995_000);
    expect(bytes.slice(3).reduce((sum, value) => sum + value, 0)).toBe(1_000_000);
  });

  test('changes of state become events at their own time, and the state knows since when', () => {
    const clock = new TestClock();
    const model = makeRunningModel(clock);
    clock.ms = 1000;
    const moves = [{ peer: 1, rail: 1, from: 'UP', to: 'DOWN', reason: 'reset: by peer', atUs: 900_000 }];
    model.telemetry(0, report(1000, [railReport(1, 1, { state: 'DOWN', epoch: 0, reason: 'reset: by peer' })], { moves }));
    expect(railView(model, '0 1 1')).toMatchObject({ state: 'DOWN', sinceMs: 1000, reason: 'reset: by peer' });
    expect(model.log.since(0).at(-1)).toMatchObject({
      type: 'rail-state',
      atMs: 900,
      rank: 0,
      peer: 1,
      rail: 1,
      transport: 'tcp',
      key: 'tcp:lo-lo#1',
      from: 'UP',
      to: 'DOWN',
      reason: 'reset: by peer',
    });
  });

  test("a rank's rail events, by their names here; what is none is left out", () => {
    const model = makeRunningModel(new TestClock());
    const event = { peer: 1, rail: 1, key: 'tcp:lo-lo#1', epoch: 3, reason: 'why', up: 1, of: 2, atMs: 5 };
    for (const type of ['lost', 'last', 'degraded', 'unreachable', 'suspect', 'restored', 'added']) model.railEvent(0, { ...event, type });
    const seen = model.log.since(0).slice(-7);
    expect(seen.map(({ type }) => type)).toEqual([
      'rail-lost',
      'rail-last',
      'rail-degraded',
      'peer-unreachable',
      'rail-suspect',
      'rail-restored',
      'rail-added',
    ]);
    expect(seen[0]).toMatchObject({ rank: 0, peer: 1, rail: 1, transport: 'tcp', epoch: 3, up: 1, of: 2 });
    expect(seen[0].text).toBe('rank 0: rail 1 (tcp) to rank 1 is lost, 1 of 2 carry: why');
    const { latestSeq } = model.log;
    for (const none of [undefined, null, 7, 'lost', {}, { ...event, type: 'new' }, { ...event, type: 'lost', peer: '1' }])
      model.railEvent(0, none);
    expect(model.log.latestSeq).toBe(latestSeq);
  });

  test('what is sent again is an event, with what it was since the last one', () => {
    const clock = new TestClock();
    const model = makeRunningModel(clock);
    clock.ms = 1000;
    model.telemetry(1, report(1000, [], { counters: { bytesResent: 5000, envelopesResent: 2 } }));
    clock.ms = 1250;
    model.telemetry(1, report(1250, [], { counters: { restarts: 1, bytesResent: 7000 } }));
    clock.ms = 1500;
    model.telemetry(1, report(1500, []));
    const resent = model.log.since(0).filter(({ type }) => type === 'resent');
    expect(resent).toMatchObject([
      { rank: 1, bytes: 5000, envelopes: 2, restarts: 0 },
      { rank: 1, bytes: 2000, envelopes: 0, restarts: 1 },
    ]);
    expect(model.history.all().find(({ key }) => key === 'resent 1')?.bytes).toEqual([0, 0, 0, 5000, 2000, 0, 0]);
  });

  test('saves and recoveries are events, as rank 0 of the program tells them', () => {
    const clock = new TestClock();
    const model = makeRunningModel(clock);
    const tell = (rank: number, counters: Record<string, number>): void => {
      clock.ms += 250;
      model.telemetry(rank, report(clock.ms, [], { counters }));
    };
    tell(0, { ftSavesCommitted: 1, ftSaveBytes: 1000 });
    tell(1, { ftSavesCommitted: 1, ftSaveBytes: 1000 });
    tell(0, { ftSavesCommitted: 3, ftSaveBytes: 3000 });
    tell(0, {});
    tell(0, { ftRecoveries: 1, ftFailures: 2, ftLostSteps: 7 });
    tell(0, { ftRecoveries: 1, ftRecoveriesInPlace: 1, ftFailures: 3, ftLostSteps: 9 });
    const seen = model.log.since(0).filter(({ type }) => type === 'saved' || type === 'recovered');
    expect(seen).toMatchObject([
      { type: 'saved', rank: 0, saves: 1, bytes: 1000, text: 'a save was committed, 1000 bytes of rank 0' },
      { type: 'saved', saves: 2, bytes: 2000, text: '2 saves were committed, 2000 bytes of rank 0' },
      { type: 'recovered', failures: 2, lostSteps: 7, text: 'the program was called again: 2 failures so far, 7 steps done again' },
      { type: 'recovered', inPlace: 1, text: 'only the dead went back: 3 failures so far, 9 steps done again' },
    ]);
  });

  test('changes that a rank could not report are told, once each', () => {
    const clock = new TestClock();
    const model = makeRunningModel(clock);
    for (const movesDropped of [3, 3, 4]) {
      clock.ms += 250;
      model.telemetry(0, report(clock.ms, [], { movesDropped }));
    }
    expect(model.log.since(0).filter(({ type }) => type === 'events-dropped')).toMatchObject([{ count: 3 }, { count: 1 }]);
  });

  test('bounds: rails, series and events', () => {
    const clock = new TestClock();
    const model = makeModel(clock, { size: 40, railsMax: 10, seriesMax: 8, eventsMax: 20 });
    for (let i = 1; i < 40; i++) {
      clock.ms += 250;
      model.telemetry(0, report(clock.ms, [railReport(i, 0)]));
    }
    expect(model.rails.size).toBe(10);
    expect(model.history.seriesCount).toBe(8);
    expect(model.job.seriesDropped).toBeGreaterThan(0);
    for (let i = 0; i < 100; i++) model.aborted({ rank: 1, code: 1, reason: 'again', stack: '' });
    expect(model.log.since(0)).toHaveLength(20);
    expect(EVENTS_MAX).toBeGreaterThan(1000);
  });

  test('what changed is given once', () => {
    const clock = new TestClock();
    const model = makeRunningModel(clock);
    expect(model.takeChanged()).toMatchObject({ ranks: [{ rank: 0 }, { rank: 1 }], rails: { length: 4 } });
    expect(model.takeChanged()).toEqual({ ranks: [], rails: [] });
    clock.ms = 1000;
    model.telemetry(1, report(1000, [railReport(0, 1, { state: 'SUSPECT' })]));
    expect(model.takeChanged()).toMatchObject({ ranks: [{ rank: 1 }], rails: [{ rank: 1, peer: 0, rail: 1, state: 'SUSPECT' }] });
  });
});
