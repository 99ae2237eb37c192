// Where the programs of the package are that run beside the library: in a process or a thread of their own.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { MultirailError } from '../errors.ts';
import { thisFile } from './load.ts';

/**
 * The file of that program: beside the bundle that this file is part of. `why` ends the sentence of the error.
 * @throws ERR_INIT: it is not there.
 */
export function programFile(program: string, why: string): string {
  const own = thisFile();
  const names = [`${program}.js`, `${program}.mjs`];
  for (const name of names) {
    const file = join(dirname(own), name);
    if (existsSync(file)) return file;
  }
  throw new MultirailError(
    'ERR_INIT',
    `there is no ${names.join(' or ')} next to ${own}, ${why}: a bundler must leave the package multirail outside its bundle`,
  );
}
