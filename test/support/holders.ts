// Ranks in one process over TCP, and processes that stand by and hold objects for them.
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { holdersOf } from '../../src/ft/recover/standby-store.ts';
import type { HolderClient } from '../../src/mpi/ft/held-objects.ts';
import { ParamTable } from '../../src/params.ts';
import { finalizeAll, LOOPBACK_PARAMS, makeRuntimes, SMALL_PARAMS } from './p2p-worlds.ts';

export interface Holders {
  /** One for each rank. */
  readonly clients: readonly HolderClient[];
  /** All are told that this process is dead. */
  dies(number: number): void;
  /** All leave. */
  end(): Promise<void>;
}

/** Ranks 0 to size - 1, and behind them those that stand by. */
export async function makeHolders(size: number, spares: number, bytesMax: number): Promise<Holders> {
  const params = new ParamTable({
    ...SMALL_PARAMS,
    ...LOOPBACK_PARAMS,
    ft: 'on',
    ft_spares: String(spares),
    ft_standby_holds: 'true',
    ft_memory_bytes_max: String(bytesMax),
  });
  const { runtimes, hub } = await makeRuntimes(size, params, () => [tcpComponent]);
  const clients = runtimes.map(({ world }) => holdersOf(world));
  return {
    clients,
    dies: (number) => hub.exited(number, { signal: 'SIGKILL' }),
    end: async () => {
      for (const client of clients) client.close();
      await finalizeAll(runtimes);
    },
  };
}
