// The variables that torchrun sets, and that people set by hand in plain shells. Rank 0 listens on MASTER_PORT. Under torchrun itself the
// agent's own key-value store already listens there, and TORCHELASTIC_USE_AGENT_STORE says so: then rank 0 uses the next port (for 65535
// the one below).
import { envInt, envIntIfSet, envText, has } from './env.ts';
import { aloneOr, checkRank, incompleteOf, meetingOf, PORT_MAX, RANKS_LIMIT, type Starter } from './starter.ts';

const BECAUSE = 'although RANK and WORLD_SIZE are';
const NAMES = ['RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT'];

export const torchrun: Starter = {
  name: 'torchrun style',

  seen: (env) => (NAMES.every((name) => has(env, name)) ? NAMES.join(', ') : undefined),

  // One of these names alone anybody may use for something else, and an address alone is often that of a whole batch script.
  incomplete(env) {
    const isPlace = has(env, 'RANK') || has(env, 'WORLD_SIZE');
    const isMeant = isPlace && env.WORLD_SIZE !== '1' && NAMES.filter((name) => has(env, name)).length > 1;
    return isMeant ? incompleteOf(env, NAMES) : undefined;
  },

  place(env) {
    const rank = envInt(env, 'RANK', 0, RANKS_LIMIT, BECAUSE);
    const size = envInt(env, 'WORLD_SIZE', 1, RANKS_LIMIT, BECAUSE);
    checkRank(rank, size, 'RANK', 'WORLD_SIZE');
    const host = envText(env, 'MASTER_ADDR', BECAUSE);
    const masterPort = envInt(env, 'MASTER_PORT', 1, PORT_MAX, BECAUSE);
    const isTaken = /^(true|1)$/i.test(env.TORCHELASTIC_USE_AGENT_STORE ?? '');
    const port = !isTaken ? masterPort : masterPort === PORT_MAX ? masterPort - 1 : masterPort + 1;
    const rule = isTaken ? "MASTER_ADDR and the port next to MASTER_PORT, where torchrun's own store is" : 'MASTER_ADDR and MASTER_PORT';
    const restarts = envIntIfSet(env, 'TORCHELASTIC_RESTART_COUNT', 0, RANKS_LIMIT);
    return {
      rank,
      size,
      localRank: envIntIfSet(env, 'LOCAL_RANK', 0, RANKS_LIMIT),
      localSize: envIntIfSet(env, 'LOCAL_WORLD_SIZE', 1, RANKS_LIMIT),
      jobKey: `torchrun-${env.TORCHELASTIC_RUN_ID ?? 'none'}-${masterPort}-${restarts ?? 0}`,
      restarts,
      meeting: aloneOr(size, () => meetingOf(env) ?? { by: 'address', host, port, rule }),
    };
  },
};
