// PMIx through its addon, without a server: a library that is not there or is not PMIx says so, misuse is refused, and a client that nobody
// serves fails with a status of PMIx. With servers: test/launchers.
import { describe, expect, test } from 'vitest';
import type { PmixBinding } from '../../../src/launch/pmix/binding.ts';
import { openPmix } from '../../../src/launch/pmix/binding.ts';
import { loadAddon } from '../../../src/native/load.ts';
import { ParamTable } from '../../../src/params.ts';
import { describeAddon, misuse, programWith, thrown } from './native-fixture.ts';

const available = loadAddon<PmixBinding>('pmix', 1);
/** Only used by tests that are skipped without it. */
const pmix = available.binding as PmixBinding;
const found = openPmix(new ParamTable());
const noLibrary = 'missing' in found ? found.missing : undefined;
if (noLibrary !== undefined) console.log(`skipped: calls of the library of PMIx: ${noLibrary}`);

describeAddon(available, 'pmix', () => {
  test('a library that is not there, or is not PMIx, says so', () => {
    expect(() => pmix.open('libno-such-library.so.9')).toThrow(/libno-such-library\.so\.9/);
    expect(thrown(() => pmix.open('libno-such-library.so.9'))).toMatchObject({ name: 'Error', code: 'ERR_PMIX' });
    expect(() => pmix.open('libm.so.6')).toThrow('libm.so.6 has no PMIx_Init');
    for (const name of ['', 'a\0b', 7 as unknown as string]) expect(thrown(() => pmix.open(name))).toEqual(misuse);
  });

  test('before a client is started, nothing is called', () => {
    const { stdout } = programWith(
      'pmix',
      available,
      `
      const codes = [];
      const tried = (body) => { try { body(); codes.push('none'); } catch (error) { codes.push(error.code); } };
      tried(() => pmix.start(() => undefined));
      tried(() => pmix.start(7));
      tried(() => pmix.init(1));
      tried(() => pmix.put(1, 'key', 'text'));
      tried(() => pmix.commit(1));
      tried(() => pmix.fence(1, true));
      tried(() => pmix.get(1, 0, 'key', false));
      tried(() => pmix.abort(1, 1, 'text'));
      tried(() => pmix.finalize(1));
      tried(() => pmix.init(0));
      console.log(codes.join(' '));
    `,
    );
    expect(stdout.trim()).toBe(`ERR_PMIX ERR_INVALID_ARG ${'ERR_PMIX '.repeat(7)}ERR_INVALID_ARG`);
  });

  test('switched off, or under another name, it says why', () => {
    expect(openPmix(new ParamTable({ ess_pmix: 'false' }))).toEqual({ missing: 'switched off by ess_pmix = false' });
    expect(openPmix(new ParamTable({ ess_pmix_library: 'libm.so.6' }))).toEqual({
      missing: 'the library of PMIx cannot be loaded (Debian package libpmix2): libm.so.6 has no PMIx_Init',
    });
  });

  describe('with the library', () => {
    const run = (body: string) =>
      programWith('pmix', available, `pmix.open('libpmix.so.2');\n${body}`, [], ['env', '-u', 'PMIX_NAMESPACE', '-u', 'PMIX_RANK']);

    test.skipIf(noLibrary !== undefined)('a client that nobody serves: the status comes by the loop, which ends', () => {
      const { stdout, status } = run(`
        pmix.start((message) => console.log(JSON.stringify([message.id, message.status < 0, message.statusText.length > 0])));
        pmix.fence(5, false);
        pmix.get(6, -1, 'pmix.job.size', true);
        pmix.commit(7);
        let code = ''; try { pmix.start(() => undefined); } catch (error) { code = error.code; }
        console.log(code);
      `);
      expect(stdout.trim().split('\n').sort()).toEqual(['ERR_PMIX', '[5,true,true]', '[6,true,true]', '[7,true,true]'].sort());
      expect(status).toBe(0);
    });

    test.skipIf(noLibrary !== undefined)('arguments are looked at', () => {
      const { stdout } = run(`
        pmix.start(() => undefined);
        const codes = [];
        const tried = (body) => { try { body(); codes.push('none'); } catch (error) { codes.push(error.code); } };
        tried(() => pmix.put(1, 'k'.repeat(512), 'text'));
        tried(() => pmix.put(1, 'key', 'a\\0b'));
        tried(() => pmix.put(1, 'key', 'x'.repeat(65536)));
        tried(() => pmix.get(1, -2, 'key', false));
        tried(() => pmix.get(1, 0, 'key', 1));
        tried(() => pmix.fence(1, 'yes'));
        tried(() => pmix.abort(1, 1.5, 'text'));
        tried(() => pmix.commit(0));
        console.log(codes.join(' '));
      `);
      expect(stdout.trim()).toBe(Array(8).fill('ERR_INVALID_ARG').join(' '));
    });

    test.skipIf(noLibrary !== undefined)(
      'a thread that has not started the client does not use it, and one that ends takes nothing with it',
      () => {
        const { stdout, status } = run(`
        const { Worker } = require('node:worker_threads');
        const path = ${JSON.stringify(available.reason === undefined ? available.path : '')};
        const worker = new Worker(\`
          const pmix = require(\${JSON.stringify(path)});
          pmix.open('libpmix.so.2');
          pmix.start(() => undefined);
          for (let id = 1; id < 20; id++) pmix.commit(id);
        \`, { eval: true });
        worker.on('exit', () => {
          try { pmix.commit(1); } catch (error) { console.log(error.code); }
          console.log('alive');
        });
      `);
        expect(stdout.trim().split('\n')).toEqual(['ERR_PMIX', 'alive']);
        expect(status).toBe(0);
      },
    );
  });
});
