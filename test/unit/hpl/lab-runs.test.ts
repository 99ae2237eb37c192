// Pulls and restores of a run in a lab: when they are carried out, and in which order.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { parseMoment } from '../../../tools/hpl/experiment.ts';
import { type PulledLab, Watch } from '../../../tools/hpl/lab-runs.ts';
import { parseRails } from '../../../tools/lab/rails.ts';

/** Notes when each fault begins and ends. A pull takes longer than the blocks until its restore. */
function slowLab(failure?: Error): { lab: PulledLab; log: string[] } {
  const log: string[] = [];
  const act = async (name: string) => {
    log.push(`${name} begins`);
    await sleep(20);
    if (failure !== undefined) throw failure;
    log.push(`${name} done`);
  };
  const pull = () => act('pull');
  return { lab: { heal: () => act('heal'), blackhole: pull, oneWay: pull, wireCut: pull, cableCut: pull }, log };
}

function watchOf(lab: PulledLab): Watch {
  const rails = parseRails('fast,slow');
  const moment = (text: string) => parseMoment(text, rails, 2);
  return new Watch(lab, { pulls: [moment('fast@25%')], restores: [moment('fast@60%')], fault: 'pull' });
}

test('a rail whose pull is still being carried out is restored after it', async () => {
  const { lab, log } = slowLab();
  const watch = watchOf(lab);
  watch.take({ hpl: 'start', n: 200, nb: 16, p: 1, q: 2, blocks: 13, from: 0 });
  for (let block = 1; block <= 13; block++) watch.take({ hpl: 'block', block, ms: block });
  watch.take({ hpl: 'stopped', block: 13, folder: '/nowhere' });
  await watch.settled();
  expect(log).toEqual(['pull begins', 'pull done', 'heal begins', 'heal done']);
  expect(watch.run?.done.map(({ text, block }) => [text, block])).toEqual([
    ['pull', 4],
    ['restore', 8],
  ]);
});

test('what a pull failed with is told when the run is over', async () => {
  const { lab } = slowLab(new Error('no such rail'));
  const watch = watchOf(lab);
  watch.take({ hpl: 'start', n: 200, nb: 16, p: 1, q: 2, blocks: 13, from: 0 });
  watch.take({ hpl: 'block', block: 13, ms: 1 });
  await sleep(50);
  await expect(watch.settled()).rejects.toThrow('no such rail');
});
