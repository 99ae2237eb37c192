// Opens the transports of a rank.
import type { BtlContext, BtlModule } from '../btl/btl.ts';
import { MultirailError } from '../errors.ts';
import type { RuntimeOptions } from './runtime-options.ts';

/**
 * Opens them into `modules`. One that does not open is left out, as long as another one is left for the other ranks. Returns those that are
 * left out, with the reason of each.
 */
export async function openModules(
  context: BtlContext,
  options: Pick<RuntimeOptions, 'modules' | 'excluded' | 'log'>,
  modules: BtlModule[],
): Promise<Record<string, string>> {
  const excluded: Record<string, string> = { ...options.excluded };
  for (const source of options.modules) {
    const module = source.create(context);
    try {
      await module.open();
    } catch (error) {
      await module.close();
      if (error instanceof MultirailError && error.code !== 'ERR_INIT') throw error;
      excluded[source.name] = error instanceof Error ? error.message : String(error);
      options.log?.('warn', `transport ${source.name} is left out: ${excluded[source.name]}`);
      continue;
    }
    modules.push(module);
  }
  return excluded;
}
