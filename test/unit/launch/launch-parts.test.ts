// The small parts of the launcher: command lines, output lines, what a rank learns from its environment.

import { EventEmitter } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { Command } from 'commander';
import * as fc from 'fast-check';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { exitOnAbort, type Job, joinJob } from '../../../src/launch/job.ts';
import { hostId, newIncarnation } from '../../../src/launch/meeting/identity.ts';
import { findSecret } from '../../../src/launch/meeting/secret.ts';
import { LauncherWatch } from '../../../src/launch/oob/launcher-watch.ts';
import { resolveCommand, stripsTypes } from '../../../src/launch/run/command.ts';
import { startJob } from '../../../src/launch/run/launcher.ts';
import { LinePrefixer, pumpInput } from '../../../src/launch/run/output.ts';
import { register as registerLab } from '../../../tools/cli/lab.ts';
import { expandMca, mcaOption, register } from '../../../tools/cli/run.ts';

const folder = mkdtempSync(join(tmpdir(), 'multirail-launch-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function prefixed(chunks: Buffer[], lineBytesMax?: number): Promise<string> {
  return (await buffer(Readable.from(chunks).pipe(new LinePrefixer('[7] ', lineBytesMax)))).toString();
}

describe('output', () => {
  test('every line gets the prefix, the last one without newline too, and empty ones', async () => {
    expect(await prefixed([Buffer.from('a\n\nb'), Buffer.from('c\nd')])).toBe('[7] a\n[7] \n[7] bc\n[7] d\n');
    expect(await prefixed([])).toBe('');
  });

  test('any text in any chunks: the lines come out whole, and each write is made of whole lines', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.string({ unit: 'binary', maxLength: 20 })), fc.nat(7), async (lines, chunkBytes) => {
        const text = lines.map((line) => `${line.replaceAll('\n', ' ')}\n`).join('');
        const bytes = Buffer.from(text);
        const chunks: Buffer[] = [];
        for (let at = 0; at < bytes.length; at += chunkBytes + 1) chunks.push(bytes.subarray(at, at + chunkBytes + 1));
        const expected = Buffer.from(text)
          .toString()
          .split('\n')
          .slice(0, -1)
          .map((line) => `[7] ${line}\n`)
          .join('');
        expect(await prefixed(chunks)).toBe(expected);
      }),
      { numRuns: 40 },
    );
  });

  test('a line of many chunks stays whole', async () => {
    const chunks = Array.from({ length: 40 }, (_, i) => Buffer.alloc(50_000, 97 + (i % 26)));
    expect(await prefixed([...chunks, Buffer.from('\nb\n')])).toBe(`[7] ${Buffer.concat(chunks)}\n[7] b\n`);
  });

  test('a line beyond the bound leaves in pieces, cut between characters', async () => {
    expect(await prefixed([Buffer.from('abcdefg\n')], 3)).toBe('[7] abc\n[7] def\n[7] g\n');
    expect(await prefixed([Buffer.from('abc\n')], 3)).toBe('[7] abc\n');
    expect(await prefixed([Buffer.from('a€€€\n')], 5)).toBe('[7] a€\n[7] €\n[7] €\n');
    // Bytes that are no UTF-8 are cut at the bound.
    const rubbish = await buffer(Readable.from([Buffer.alloc(9, 0x80)]).pipe(new LinePrefixer('', 4)));
    expect(rubbish.length).toBe(9 + 3);
  });

  test('input goes to every target, and one that goes away holds nobody up', async () => {
    const source = new PassThrough();
    const targets = [new PassThrough(), new PassThrough({ highWaterMark: 1 })];
    const all = buffer(targets[0]);
    const stop = pumpInput(source, targets);
    source.write('one ');
    targets[1].destroy();
    source.end('two');
    expect((await all).toString()).toBe('one two');
    stop();
  });
});

describe('command', () => {
  const script = join(folder, 'a.mjs');
  const typescript = join(folder, 'b.ts');
  writeFileSync(script, '');
  writeFileSync(typescript, '');

  test('programs for Node get Node, all others run as they are', () => {
    expect(resolveCommand([script, '-x'], { nodeArgs: ['--inspect'] })).toEqual([process.execPath, '--inspect', script, '-x']);
    expect(resolveCommand(['a.mjs'], { cwd: folder })).toEqual([process.execPath, script]);
    expect(resolveCommand(['hostname', '-f'])).toEqual(['hostname', '-f']);
    writeFileSync(join(folder, 'hpcc'), Buffer.from('\0asm\x01\0\0\0', 'latin1'));
    const loader = expect.stringMatching(/^--import=file:.*wasm\.js$/);
    expect(resolveCommand(['./hpcc', 'x'], { cwd: folder })).toEqual([process.execPath, loader, join(folder, 'hpcc'), 'x']);
    expect(() => resolveCommand(['missing.js'], { cwd: folder })).toThrow('there is no file missing.js');
    expect(() => resolveCommand(['hostname'], { nodeArgs: ['-r'] })).toThrow('--node-arg');
    expect(() => resolveCommand([])).toThrow('no program');
  });

  test('TypeScript runs by itself where Node can, by a loader where one is installed, else with a clear error', () => {
    const loader = 'file:///loader.mjs';
    expect(resolveCommand([typescript], { nodeVersion: '22.18.0' })).toEqual([process.execPath, typescript]);
    expect(resolveCommand([typescript], { nodeVersion: '20.19.0', findLoader: () => loader })).toEqual([
      process.execPath,
      '--import',
      loader,
      typescript,
    ]);
    expect(() => resolveCommand([typescript], { nodeVersion: '20.19.0', findLoader: () => undefined })).toThrow(
      /npm install --save-dev tsx/,
    );
    const answers = { '20.19.0': false, '22.17.1': false, '22.18.0': true, '23.5.0': false, '23.6.0': true, '24.0.0': true };
    for (const [version, answer] of Object.entries(answers)) expect(stripsTypes(version)).toBe(answer);
  });
});

describe('command line', () => {
  function makeProgram(): Command {
    const program = new Command('multirail')
      .enablePositionalOptions()
      .exitOverride()
      .configureOutput({ writeErr: () => undefined });
    register(program);
    registerLab(program);
    program
      .command('other')
      .addOption(mcaOption())
      .option('--flag')
      .option('--serve [address]')
      .argument('[rest...]')
      .action(() => undefined);
    return program;
  }
  const expand = (line: string) => expandMca(makeProgram(), line.split(' ')).join(' ');

  test("--mca NAME VALUE is joined among the command's own options only", () => {
    expect(expand('run -n 2 --mca btl tcp,self app.js --mca x y')).toBe('run -n 2 --mca btl=tcp,self app.js --mca x y');
    expect(expand('run --mca btl=tcp -n 2 -- app.js --mca x y')).toBe('run --mca btl=tcp -n 2 -- app.js --mca x y');
    expect(expand('run --no-prefix --mca btl tcp --node-arg --mca -n 2 a')).toBe('run --no-prefix --mca btl=tcp --node-arg --mca -n 2 a');
    expect(expand('other --flag --mca btl tcp')).toBe('other --flag --mca btl=tcp');
    expect(expand('nothing --mca btl tcp')).toBe('nothing --mca btl tcp');
  });

  test('--dashboard takes a port, and not the name of the program', () => {
    expect(expand('run -n 2 --dashboard app.js 8')).toBe('run -n 2 --dashboard=0 app.js 8');
    expect(expand('run --dashboard 8080 -n 2 --mca btl tcp app.js')).toBe('run --dashboard=8080 -n 2 --mca btl=tcp app.js');
    expect(expand('run --dashboard --events f -n 2 app.js')).toBe('run --dashboard=0 --events f -n 2 app.js');
    expect(expand('run --dashboard=7 -n 2 app.js --dashboard')).toBe('run --dashboard=7 -n 2 app.js --dashboard');
    expect(expand('other --dashboard 7')).toBe('other --dashboard 7');
  });

  test("a command's own command has its own options", () => {
    expect(expand('lab run --dashboard app.js 8')).toBe('lab run --dashboard=0 app.js 8');
    expect(expand('lab run --rails fast,slow --dashboard 8080 -n 2 --mca btl tcp app.js --dashboard 7')).toBe(
      'lab run --rails fast,slow --dashboard=8080 -n 2 --mca btl=tcp app.js --dashboard 7',
    );
    expect(expand('lab run --name --dashboard --dashboard-hold app.js')).toBe('lab run --name --dashboard --dashboard-hold app.js');
    expect(expand('lab exec 1 run --dashboard --mca x y')).toBe('lab exec 1 run --dashboard --mca x y');
    expect(expand('lab --dashboard 7')).toBe('lab --dashboard 7');
  });

  test('another option that may go without a word stays as it is', () => {
    expect(expand('other --serve')).toBe('other --serve');
    expect(expand('other --serve a:1')).toBe('other --serve a:1');
  });

  test('wrong values are usage errors before anything starts', async () => {
    const lines = [
      'run -n 0 a',
      'run -n 1.5 a',
      'run a',
      'run -n 2',
      'run -n 1 --stdin x a',
      'run -n 1 --mca nothing 1 a',
      'run -n 1 --mca btl_tcp_links 99 a',
      'run -n 1 --dashboard 65536 a',
      'lab run --dashboard 65536 a',
      'lab run --mca nothing 1 a',
    ];
    for (const line of lines) {
      const program = makeProgram();
      await expect(program.parseAsync(expandMca(program, line.split(' ')), { from: 'user' }), line).rejects.toMatchObject({
        name: 'CommanderError',
      });
    }
  });

  test('the same is checked below the command line', async () => {
    await expect(startJob({ size: 0, command: ['true'] })).rejects.toMatchObject({ code: 'ERR_ARG' });
    await expect(startJob({ size: 2, command: ['true'], stdinTo: 2 })).rejects.toMatchObject({ code: 'ERR_ARG' });
    await expect(startJob({ size: 1, command: ['true'], mca: { nothing: '1' } })).rejects.toMatchObject({ code: 'ERR_CONFIG' });
  });
});

describe('job', () => {
  test('without any environment a process is a world of one', async () => {
    const job = await joinJob({});
    expect(job).toMatchObject({ rank: 0, size: 1, localRank: 0, localSize: 1, oob: undefined, secret: undefined });
    expect((await joinJob({})).jobId).not.toBe(job.jobId);
  });

  test('a broken environment is named', async () => {
    const env = { MULTIRAIL_RANK: '1', MULTIRAIL_SIZE: '2', MULTIRAIL_JOB_ID: 'j', MULTIRAIL_OOB: 'ws://127.0.0.1:1/' };
    await expect(joinJob({ ...env, MULTIRAIL_RANK: 'x' })).rejects.toThrow('MULTIRAIL_RANK="x"');
    await expect(joinJob({ ...env, MULTIRAIL_RANK: '2' })).rejects.toThrow('not below');
    await expect(joinJob({ ...env, MULTIRAIL_JOB_ID: undefined })).rejects.toThrow('MULTIRAIL_JOB_ID is not set');
    await expect(joinJob(env)).rejects.toThrow("the job's secret is missing");
  });

  test('the secret may come from a file', () => {
    const file = join(folder, 'secret');
    writeFileSync(file, 'sixteen bytes at least\n');
    expect(Buffer.from(findSecret({ MULTIRAIL_SECRET_FILE: file }) ?? []).toString()).toBe('sixteen bytes at least');
    writeFileSync(file, 'short');
    expect(() => findSecret({ MULTIRAIL_SECRET_FILE: file })).toThrow('holds 5 bytes');
    expect(() => findSecret({ MULTIRAIL_SECRET_FILE: `${file}-not` })).toThrow('MULTIRAIL_SECRET_FILE');
    expect(findSecret({})).toBeUndefined();
  });

  test('incarnations rise and are exact numbers, the host id stays', () => {
    const list = Array.from({ length: 1000 }, newIncarnation);
    expect(list.every((value, i) => Number.isSafeInteger(value) && (i === 0 || value > list[i - 1]))).toBe(true);
    expect(hostId()).toBe(hostId());
    expect(hostId()).not.toBe('');
  });

  test('what is known of the launcher', () => {
    const state = { parent: 10, alive: true };
    const table = { ppid: () => state.parent, exists: () => state.alive };
    const child = new LauncherWatch(10, table);
    const wrapped = new LauncherWatch(11, table);
    const elsewhere = new LauncherWatch(11, { ...table, exists: () => false });
    expect([child, wrapped, elsewhere].map((watch) => watch.knowledge())).toEqual(['alive', 'alive', 'unknown']);
    Object.assign(state, { parent: 1, alive: false });
    expect([child, wrapped, elsewhere].map((watch) => watch.knowledge())).toEqual(['dead', 'dead', 'unknown']);
    expect(new LauncherWatch(undefined).knowledge()).toBe('unknown');
  });

  test("who ends because of another rank's abort tells the starter first, once, and does not wait for it for ever", async () => {
    const steps: string[] = [];
    vi.spyOn(process, 'exit').mockImplementation((code) => steps.push(`exit ${code}`) as never);
    vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    try {
      const oob = new EventEmitter();
      let taken = () => {};
      const abortByStarter = (code: number, reason: string) => {
        steps.push(`starter ${code} ${reason}`);
        return new Promise<void>((resolve) => {
          taken = resolve;
        });
      };
      const job = (): Job => ({ rank: 2, size: 3, oob, abortByStarter }) as unknown as Job;
      const undo = exitOnAbort(job());
      for (let time = 0; time < 2; time++) oob.emit('abort', { rank: 1, code: 7, reason: 'enough' });
      await pause(20);
      expect(steps).toEqual(['starter 7 enough']);
      taken();
      await vi.waitFor(() => expect(steps).toEqual(['starter 7 enough', 'exit 7']));
      undo();

      exitOnAbort(job());
      oob.emit('abort', { rank: 1, code: 8, reason: 'deaf' });
      await vi.waitFor(() => expect(steps.slice(2)).toEqual(['starter 8 deaf', 'exit 8']), { timeout: 5_000 });
    } finally {
      vi.restoreAllMocks();
    }
  });
});
