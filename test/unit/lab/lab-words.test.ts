// What people write for a lab: rails, rates, times, actions, timelines; and the errors when it makes no sense.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ACTION_USAGE, describeAction, type LabAction, parseAction, parseTime } from '../../../tools/lab/actions.ts';
import { FaultList } from '../../../tools/lab/faults.ts';
import { findForwarder } from '../../../tools/lab/forwarder.ts';
import { labJobSpec } from '../../../tools/lab/job.ts';
import { socketPath } from '../../../tools/lab/keeper.ts';
import { ingressLossLines, shapeLine } from '../../../tools/lab/plan.ts';
import { labJson, parseLabJson, parseRails, parseRate, railIndex, showRate } from '../../../tools/lab/rails.ts';
import { parseTimeline, playTimeline, type TimelineStep } from '../../../tools/lab/timeline.ts';

const RAILS = parseRails('fast,slow,2gbit');

test('rails by rate, by name, and the two that have a name of their own', () => {
  expect(parseRails('1gbit, 100mbit,2.5gbit')).toEqual([
    { name: '0', mbit: 1000 },
    { name: '1', mbit: 100 },
    { name: '2', mbit: 2500 },
  ]);
  expect(parseRails('fast=unshaped,slow=100mbit')).toEqual([
    { name: 'fast', mbit: Number.POSITIVE_INFINITY },
    { name: 'slow', mbit: 100 },
  ]);
  expect(RAILS.map(({ name, mbit }) => [name, mbit])).toEqual([
    ['fast', 10_000],
    ['slow', 1000],
    ['2', 2000],
  ]);
  expect(['fast', '0', '1', '2'].map((text) => railIndex(RAILS, text))).toEqual([0, 0, 1, 2]);
  expect(() => railIndex(RAILS, '3')).toThrow('ERR_ARG: there is no rail "3": there are fast, slow, 2');
  expect(() => parseRails('fast,fast')).toThrow('ERR_ARG: two rails are called fast');
  expect(() => parseRails('quick')).toThrow('ERR_ARG: "quick" is not a rate: expected one such as 1gbit, 100mbit or unshaped');
  expect(() => parseRails('')).toThrow('ERR_ARG: a lab has 1 to 8 rails, not 0');
  expect(() => parseRails('a b=1gbit')).toThrow('ERR_ARG: "a b" cannot name a rail');
  expect(() => parseRate('0mbit')).toThrow('ERR_ARG');
  expect([1000, 100, 2500, 0.5, Number.POSITIVE_INFINITY].map(showRate)).toEqual([
    '1 Gbit/s',
    '100 Mbit/s',
    '2.5 Gbit/s',
    '500 kbit/s',
    'unshaped',
  ]);
});

test('a rail without a rate has a queue that holds nothing back', () => {
  expect(shapeLine(0, 1, { mbit: Number.POSITIVE_INFINITY, queueMs: 25 })).toBe('qdisc replace dev r1n0 root handle 1: pfifo limit 10000');
  expect(shapeLine(0, 1, { mbit: 100, queueMs: 25 })).toContain('tbf rate 100000000bit');
});

test('times', () => {
  expect(['500ms', '1.5s', '2m', '0s'].map(parseTime)).toEqual([500, 1500, 120_000, 0]);
  for (const text of ['5', '-1s', '1h', 's']) expect(() => parseTime(text)).toThrow(`ERR_ARG: "${text}" is not a time`);
});

const ACTIONS: [string, LabAction, string][] = [
  ['pull fast', { kind: 'pull', rail: 0 }, 'rail fast pulled'],
  ['pull slow 3', { kind: 'pull', rail: 1, node: 3 }, 'rail slow pulled at node 3'],
  ['blackhole 2', { kind: 'blackhole', rail: 2 }, 'rail 2 is a black hole'],
  ['oneway fast 0', { kind: 'oneway', rail: 0, node: 0 }, 'what node 0 sends on rail fast vanishes'],
  ['loss slow 5', { kind: 'loss', rail: 1, percent: 5 }, 'rail slow loses 5 % of its frames'],
  ['loss slow 0.5% 1', { kind: 'loss', rail: 1, percent: 0.5, node: 1 }, 'rail slow loses 0.5 % of what node 1 sends'],
  ['delay fast 300', { kind: 'delay', rail: 0, delayMs: 300, spreadMs: 0 }, 'rail fast takes 300 ms longer each way'],
  [
    'delay fast 0.2s 50ms',
    { kind: 'delay', rail: 0, delayMs: 200, spreadMs: 50 },
    'rail fast takes 200 ms longer each way, and swings by 50 ms',
  ],
  ['reorder 2 1.5', { kind: 'reorder', rail: 2, percent: 1.5, holdMs: 10 }, 'rail 2 holds 1.5 % of its frames back for 10 ms'],
  ['reorder 2 1.5 4ms', { kind: 'reorder', rail: 2, percent: 1.5, holdMs: 4 }, 'rail 2 holds 1.5 % of its frames back for 4 ms'],
  ['flip slow 5', { kind: 'flip', rail: 1, percent: 5 }, 'rail slow flips a bit in 5 % of its frames'],
  ['flip slow 5% 0', { kind: 'flip', rail: 1, percent: 5, node: 0 }, 'rail slow flips a bit in 5 % of what node 0 sends'],
  ['flap fast 300ms', { kind: 'flap', rail: 0, periodMs: 300, silent: false }, 'rail fast flaps every 300 ms'],
  ['flap fast 1s silent', { kind: 'flap', rail: 0, periodMs: 1000, silent: true }, 'rail fast flaps every 1000 ms, in silence'],
  ['throttle slow 10mbit', { kind: 'throttle', rail: 1, mbit: 10 }, 'rail slow at 10 Mbit/s'],
  [
    'throttle slow 64kbit 16kb',
    { kind: 'throttle', rail: 1, mbit: 0.064, queueBytes: 16_384 },
    'rail slow at 64 kbit/s, with a queue of 16384 bytes',
  ],
  ['kill 3', { kind: 'kill', node: 3 }, 'every process on node 3 killed'],
  ['halt 0', { kind: 'halt', node: 0 }, 'node 0 is halted: its processes stand still, its cables are out'],
  ['restore', { kind: 'restore' }, 'all rails restored'],
  ['restore slow', { kind: 'restore', rail: 1 }, 'rail slow restored'],
];

test.each(ACTIONS)('%s', (text, action, said) => {
  expect(parseAction(text.split(' '), RAILS, 4)).toEqual(action);
  expect(describeAction(action, RAILS)).toBe(said);
});

test('every action is tried above', () => {
  expect([...new Set(ACTIONS.map(([, { kind }]) => kind))].sort()).toEqual(Object.keys(ACTION_USAGE).sort());
});

test.each([
  ['', 'is not an action of a lab: expected one of pull, blackhole'],
  ['unplug fast', '"unplug" is not an action of a lab'],
  ['pull', 'expected pull RAIL [NODE], not "pull"'],
  ['pull fast 1 2', 'expected pull RAIL [NODE]'],
  ['pull nix', 'there is no rail "nix"'],
  ['pull fast 4', 'there is no node "4": nodes go from 0 to 3'],
  ['oneway fast', 'expected oneway RAIL NODE'],
  ['kill', 'expected kill NODE, not "kill"'],
  ['halt 4', 'there is no node "4"'],
  ['halt fast', 'there is no node "fast"'],
  ['loss fast', 'expected loss RAIL PERCENT [NODE]'],
  ['loss fast 101', '"101" is not a percentage: expected one such as 5, 0.1 or 20%, up to 100'],
  ['loss fast -1', '"-1" is not a percentage'],
  ['loss fast 5 4', 'there is no node "4"'],
  ['flap fast soon', '"soon" is not a time'],
  ['flap fast 5ms', 'flap every 5ms is faster than a lab can switch: expected at least 10ms'],
  ['flap fast 1s loud', 'expected flap RAIL EVERY [silent]'],
  ['delay fast', 'expected delay RAIL MS [SPREAD]'],
  ['delay fast soon', '"soon" is not a time'],
  ['delay fast 11s', 'a delay of 11s is longer than a lab can hold frames: expected at most 10000ms'],
  ['flip fast 5 9', 'there is no node "9"'],
  ['throttle fast 1mbit long', '"long" is not the length of a queue: expected one such as 16kb, up to 256mb'],
  ['throttle fast quick', '"quick" is not a rate'],
])('"%s" is refused', (text, why) => {
  expect(() => parseAction(text === '' ? [] : text.split(' '), RAILS, 4)).toThrow(`ERR_ARG: ${why.startsWith('is') ? '"" ' : ''}${why}`);
});

test('a timeline is read in the order of its times, with comments, and errors name their line', () => {
  const steps = parseTimeline('# all of it\n\n2s restore  # everything\n500ms\tpull fast\n 2s pull slow 1\n', RAILS, 2);
  expect(steps).toEqual([
    { atMs: 500, action: { kind: 'pull', rail: 0 } },
    { atMs: 2000, action: { kind: 'restore' } },
    { atMs: 2000, action: { kind: 'pull', rail: 1, node: 1 } },
  ]);
  expect(() => parseTimeline('1s pull fast\nsoon pull fast', RAILS, 2)).toThrow('ERR_ARG: line 2 of the timeline: "soon" is not a time');
  expect(() => parseTimeline('1s', RAILS, 2)).toThrow('ERR_ARG: line 1 of the timeline: "" is not an action of a lab');
});

test('a timeline is played in order, none of it early, and ends when it is told to', async () => {
  const startMs = performance.now();
  const played: [LabAction['kind'], boolean][] = [];
  const over = new AbortController();
  const steps = parseTimeline('0s pull fast\n30ms restore\n10m pull slow', RAILS, 2);
  const apply = async ({ atMs, action }: TimelineStep) => {
    // Timers may be a millisecond early by the other clock.
    played.push([action.kind, performance.now() - startMs >= atMs - 2]);
    if (action.kind === 'restore') over.abort();
  };
  await playTimeline(steps, apply, over.signal);
  expect(played).toEqual([
    ['pull', true],
    ['restore', true],
  ]);
});

test('a job goes round the nodes, and listens on all rails of the first', () => {
  const view = {
    name: 'x',
    congestionControl: 'cubic',
    rails: RAILS,
    namespaces: ['x-n0', 'x-n1'],
    addresses: [['10.0.0.1', '10.1.0.1'], []],
  };
  const spec = labJobSpec(view, { size: 3, command: ['a.js'], mca: { btl_tcp_links: '2' }, prefix: true });
  expect(spec.namespaces).toEqual(['x-n0', 'x-n1', 'x-n0']);
  expect(spec.oobListen).toEqual(['10.0.0.1', '10.1.0.1']);
  expect(spec.mca).toEqual({ btl: 'self,tcp', btl_tcp_links: '2' });
  expect(labJobSpec(view, { size: 1, command: ['a.js'], mca: { btl: 'self,ws' }, prefix: true }).mca).toEqual({ btl: 'self,ws' });
});

test('names of labs are no paths', () => {
  expect(socketPath('my-lab_2')).toMatch(/my-lab_2\.socket$/);
  for (const name of ['', '../x', 'a/b', '-x', 'x'.repeat(33)]) expect(() => socketPath(name)).toThrow('ERR_ARG');
});

test('what is not shaped is so at the other end of a socket too', () => {
  const rails = parseRails('a=unshaped,unshaped,1gbit');
  expect(parseLabJson(labJson({ rails }))).toEqual({ rails });
  const action = parseAction(['throttle', 'a', 'unshaped'], rails, 2);
  expect(parseLabJson(labJson(action))).toEqual({ kind: 'throttle', rail: 0, mbit: Number.POSITIVE_INFINITY });
  // A rail may be called so.
  expect(parseLabJson(labJson({ name: 'unshaped' }))).toEqual({ name: 'unshaped' });
});

test('what was done to rails is kept until they are restored, each thing once, and one rate', () => {
  const list = new FaultList([[], [], []]);
  const note = (...words: string[]) => list.note(parseAction(words, RAILS, 2));
  const kinds = () => list.all().map((faults) => faults.map(({ kind }) => kind));
  note('pull', 'fast');
  note('throttle', 'fast', '1gbit');
  note('pull', 'fast', '1');
  note('throttle', 'fast', '2gbit');
  note('pull', 'fast');
  note('oneway', 'slow', '0');
  note('oneway', 'slow', '1');
  note('blackhole', '2');
  expect(list.all()[0]).toEqual([
    { kind: 'pull', rail: 0, node: 1 },
    { kind: 'throttle', rail: 0, mbit: 2000 },
    { kind: 'pull', rail: 0 },
  ]);
  expect(kinds().slice(1)).toEqual([['oneway', 'oneway'], ['blackhole']]);
  note('restore', 'slow');
  expect(kinds()).toEqual([['pull', 'throttle', 'pull'], [], ['blackhole']]);
  note('restore');
  expect(kinds()).toEqual([[], [], []]);
});

test('a halted node is a fault of every rail until all are restored; what was killed is no state of the lab', () => {
  const list = new FaultList([[], []]);
  const note = (...words: string[]) => {
    list.note(parseAction(words, RAILS, 2));
    return list.all().map((faults) => faults.map(({ kind }) => kind));
  };
  expect(note('kill', '1')).toEqual([[], []]);
  expect(note('halt', '1')).toEqual([['halt'], ['halt']]);
  expect(note('halt', '1')).toEqual([['halt'], ['halt']]);
  expect(note('halt', '0')).toEqual([
    ['halt', 'halt'],
    ['halt', 'halt'],
  ]);
  expect(note('restore', 'fast')).toEqual([[], ['halt', 'halt']]);
  expect(note('restore')).toEqual([[], []]);
});

test('a loss takes the place of one of the same frames, and none is no fault', () => {
  const list = new FaultList([[], []]);
  const note = (...words: string[]) => {
    list.note(parseAction(words, RAILS, 2));
    return list.all()[0].map((fault) => describeAction(fault, RAILS).replace('rail fast loses ', ''));
  };
  note('loss', 'fast', '5', '1');
  expect(note('loss', 'fast', '10', '0')).toEqual(['5 % of what node 1 sends', '10 % of what node 0 sends']);
  expect(note('loss', 'fast', '20', '1')).toEqual(['10 % of what node 0 sends', '20 % of what node 1 sends']);
  expect(note('loss', 'fast', '1')).toEqual(['1 % of its frames']);
  expect(note('loss', 'fast', '0', '1')).toEqual(['1 % of its frames', '0 % of what node 1 sends']);
  expect(note('loss', 'fast', '0')).toEqual([]);
});

test('of what a forwarder does there is one of each kind, and none of it is left when it is gone', () => {
  const list = new FaultList([[]]);
  const note = (...words: string[]) => list.note(parseAction(words, RAILS.slice(0, 1), 2));
  const kinds = () => list.all()[0].map(({ kind }) => kind);
  note('delay', '0', '30');
  note('delay', '0', '300', '20');
  note('flip', '0', '5', '1');
  note('flip', '0', '5');
  note('reorder', '0', '5');
  note('loss', '0', '5');
  expect(kinds()).toEqual(['delay', 'flip', 'reorder', 'loss']);
  note('delay', '0', '0', '20');
  expect(kinds()).toEqual(['flip', 'reorder', 'loss', 'delay']);
  note('delay', '0', '0');
  note('reorder', '0', '0');
  expect(kinds()).toEqual(['flip', 'loss']);
  list.note({ kind: 'forwarder-lost', rail: 0, why: 'it ended with 1' });
  expect(list.all()[0].map((fault) => describeAction(fault, RAILS))).toEqual([
    'rail fast loses 5 % of its frames',
    'rail fast is without delay, reordering and flips, since its forwarder is gone: it ended with 1',
  ]);
  note('restore');
  expect(kinds()).toEqual([]);
});

test('without its binary the forwarder is missing, and says how to have it', () => {
  // Inside the checkout, where its packages are found.
  const cache = join(import.meta.dirname, '../../../.cache');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'lab-native-'));
  expect(findForwarder(folder)).toEqual({
    missing: expect.stringMatching(/^there is no binary of it: no prebuilt binary for \w+-\w+; 'npm run build:native' builds one/),
  });
  rmSync(folder, { recursive: true });
});

test('a tiny rate has a burst of one frame, and a queue may be said in bytes', () => {
  const rate = { mbit: 0.064, queueMs: 25 };
  expect(shapeLine(0, 0, rate)).toMatch(/tbf rate 64000bit burst 2048 limit 34816$/);
  expect(shapeLine(0, 0, { ...rate, queueBytes: 4096 })).toMatch(/burst 2048 limit 6144$/);
});

test('what is lost by chance is a share of the random numbers, and never none of them', () => {
  const threshold = (percent: number) => /53 1 0 (\d+)/.exec(ingressLossLines(1, 0, percent)[1])?.[1];
  expect([50, 25, 1e-10].map(threshold)).toEqual(['2147483648', '1073741824', '1']);
  expect(threshold(99.999999999999)).toBe(String(2 ** 32 - 1));
  expect(ingressLossLines(1, 0, 100)[1]).toMatch(/dev r0n1 ingress .* bytecode '1,6 0 0 2'$/);
});
