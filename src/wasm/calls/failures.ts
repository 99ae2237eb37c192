// MPIX_Comm_*: what programs do after processes have failed (User-Level Failure Mitigation). The parameter `ft` is on.
import { Comm } from '../comm.ts';
import { fail } from '../errors.ts';
import type { Calls, Machine } from '../machine.ts';
import { Req } from '../req.ts';

export function failures(m: Machine): Calls {
  const { memory } = m;
  const acknowledged = new WeakMap<Comm, number>();
  const keep = (at: number, request: Req): number => {
    request.handle = m.requests.add(request);
    memory.setInt(at, request.handle);
    return 0;
  };
  return {
    Comm_revoke: (comm) => {
      m.comm(comm).base.revokeSync();
      return 0;
    },
    Comm_is_revoked: (comm, flag) => {
      memory.setInt(flag, m.comm(comm).base.isRevoked ? 1 : 0);
      return 0;
    },
    Comm_shrink: (comm, at) => {
      const c = m.intra(comm);
      memory.setInt(at, m.addComm(new Comm(c.base.shrinkSync(), c.errhandler)));
      return 0;
    },
    Comm_ishrink: (comm, at, request) => {
      const c = m.intra(comm);
      const inner = c.base.ishrink();
      const handle = m.comms.add(undefined as unknown as Comm);
      memory.setInt(at, handle);
      const after = (): void => {
        const made = new Comm(inner.result ?? fail('INTERN', 'a shrink has given nothing'), c.errhandler);
        made.handle = handle;
        m.comms.set(handle, made);
      };
      return keep(request, new Req({ comm: c, kind: 'other', inner, after }));
    },
    Comm_agree: (comm, flag) => {
      const { flag: agreed, error } = m.comm(comm).base.agreeSync(memory.int(flag) >>> 0);
      memory.setInt(flag, agreed | 0);
      if (error !== undefined) throw error;
      return 0;
    },
    Comm_iagree: (comm, flag, request) => {
      const c = m.comm(comm);
      const inner = c.base.iagree(memory.int(flag) >>> 0);
      const after = (): void => {
        memory.setInt(flag, (inner.result?.flag ?? 0) | 0);
        if (inner.result?.error !== undefined) throw inner.result.error;
      };
      return keep(request, new Req({ comm: c, kind: 'other', inner, after }));
    },
    Comm_get_failed: (comm, at) => {
      memory.setInt(at, m.groups.add(m.comm(comm).base.getFailed()));
      return 0;
    },
    Comm_ack_failed: (comm, count, at) => {
      memory.setInt(at, m.comm(comm).base.ackFailed(count));
      return 0;
    },
    Comm_failure_ack: (comm) => {
      const c = m.comm(comm);
      acknowledged.set(c, c.base.ackFailed());
      return 0;
    },
    Comm_failure_get_acked: (comm, at) => {
      const c = m.comm(comm);
      const failed = c.base.getFailed();
      const count = Math.min(acknowledged.get(c) ?? 0, failed.size);
      memory.setInt(at, m.groups.add(failed.include(Array.from({ length: count }, (_, i) => i))));
      return 0;
    },
  };
}
