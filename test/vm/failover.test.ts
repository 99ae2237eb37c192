// A job of two processes inside the guest: a message of 64 MiB whose verbs rail is pulled at a random moment, by cable, by black hole and
// by moving a queue pair to error, arrives whole over TCP, and the rail is used again once it is restored. MULTIRAIL_VM_PULLS sets the
// number of pulls (5; 2 where samples are run).
import { join } from 'node:path';
import { expect, it, type TestContext } from 'vitest';
import { startNode } from '../support/helpers.ts';
import { IS_SAMPLED } from '../support/sample.ts';
import { unavailable } from './verbs-fixture.ts';

const ROOT = new URL('../..', import.meta.url).pathname;
const PULLS = Number(process.env.MULTIRAIL_VM_PULLS ?? (IS_SAMPLED ? 2 : 5));
const SEED = Number(process.env.MULTIRAIL_VM_SEED ?? Date.now() % 100_000);
/**
 * The guest's processors are emulated: on a busy host a device acknowledges nothing for 200 ms and more while TCP moves. By what is shipped such
 * a rail is bad, and is left again and again. This test is of pulls: the judgement is on, with a time that fits the guest.
 */
const STALL_TIMEOUT_MS = '1000';
/** A pull takes some six seconds in an emulated guest. */
const LIMIT_MS = 60_000 + PULLS * 30_000;

it(
  `64 MiB arrive whole, ${PULLS} pulls of ${PULLS}, and the rail is used again`,
  async ({ skip }: TestContext) => {
    if (unavailable !== undefined) {
      console.info(`skipped: verbs under pulls: ${unavailable}`);
      skip(unavailable);
    }
    console.info(`seed ${SEED}`);
    const args = [
      join(ROOT, 'dist/cli.js'),
      'run',
      '-n',
      '2',
      '--mca',
      'btl',
      'self,verbs,tcp',
      '--mca',
      'bml_stall_timeout_ms',
      STALL_TIMEOUT_MS,
      join(ROOT, 'test/vm/fixtures/pulled-rank.mjs'),
    ];
    const { code, stdout, stderr } = await startNode([...args, String(PULLS), String(SEED)], { timeoutMs: LIMIT_MS }).ended;
    expect(code, `seed ${SEED}\n${stdout}\n${stderr}`).toBe(0);
    expect(stdout.match(/^\[\d\] OK /gm)?.length).toBe(2);
    for (const line of stdout.split('\n').filter((text) => text.includes(' pull '))) console.info(line);
  },
  LIMIT_MS + 10_000,
);
