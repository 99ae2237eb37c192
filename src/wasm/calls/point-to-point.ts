// Sends, receives and probes in all of their modes.
import { MultirailError } from '../../errors.ts';
import type { Request } from '../../mpi/request.ts';
import * as abi from '../abi.ts';
import type { Comm } from '../comm.ts';
import { fail, MpiError } from '../errors.ts';
import type { Calls, Machine, Matched } from '../machine.ts';
import { Req, type ReqOptions } from '../req.ts';
import type { Datatype } from '../types/datatype.ts';
import { pack } from '../types/pack.ts';

/** A message that MPI_Bsend has copied. */
interface Buffered {
  readonly request: Request;
  readonly bytes: number;
}

/** The memory that the program lends for buffered sends. Nothing is put there: it is only counted. */
class SendBuffer {
  at = 0;
  bytes = 0;
  isAttached = false;
  private pending: Buffered[] = [];

  /** Of what is under way. */
  private used(): number {
    this.pending = this.pending.filter(({ request }) => request.state === 'ACTIVE');
    return this.pending.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Ends in an error where there is no room. */
  reserve(m: Machine, bytes: number): void {
    const need = bytes + abi.BSEND_OVERHEAD / 4;
    if (this.used() + need > this.bytes) m.runtime.progressSync();
    if (this.used() + need > this.bytes)
      fail('BUFFER', `${bytes} bytes do not fit into what is left of the buffer of ${this.bytes} bytes (MPI_Buffer_attach)`);
  }

  add(request: Request, bytes: number): void {
    this.pending.push({ request, bytes: bytes + abi.BSEND_OVERHEAD / 4 });
  }

  flush(): void {
    for (const { request } of this.pending) if (request.state === 'ACTIVE') request.waitSync();
    this.pending = [];
  }
}

export function pointToPoint(m: Machine): Calls {
  const { memory } = m;
  const buffer = new SendBuffer();
  const keep = (at: number, options: ReqOptions): void => {
    const request = new Req(options);
    request.handle = m.requests.add(request);
    memory.setInt(at, request.handle);
  };

  /** Receives into the program's memory, also what was cut off. */
  const receive = (comm: Comm, at: number, count: number, type: Datatype, from: number, tag: number, status: number): void => {
    const { buffer: into, after } = m.incoming(at, count, type);
    try {
      const got = comm.base.recvSync(into, from, tag);
      after?.(got.bytes);
      m.setStatus(status, m.rankOf(comm, got.source), got.source < 0 ? abi.ANY_TAG : got.tag, got.bytes);
    } catch (error) {
      if (error instanceof MultirailError && error.status !== undefined) {
        after?.(error.status.bytes);
        m.setStatus(status, m.rankOf(comm, error.status.source), error.status.tag, error.status.bytes);
      }
      throw error;
    }
  };

  const send: Calls[string] = (at, count, type, dest, tag, comm) => {
    const c = m.comm(comm);
    const to = m.dest(c, dest);
    c.base.sendSync(m.outgoing(at, count, m.committed(type)), to, m.sendTag(tag));
    return 0;
  };
  const isend: Calls[string] = (at, count, type, dest, tag, comm, request) => {
    const c = m.comm(comm);
    const to = m.dest(c, dest);
    keep(request, { comm: c, kind: 'send', inner: c.base.isend(m.outgoing(at, count, m.committed(type)), to, m.sendTag(tag)) });
    return 0;
  };

  /** A copy goes, so that the program has its memory back at once. */
  const buffered = (at: number, count: number, type: number, dest: number, tag: number, comm: number): Comm => {
    const c = m.comm(comm);
    const to = m.dest(c, dest);
    const data = m.outgoing(at, count, m.committed(type));
    buffer.reserve(m, data.length);
    const copy = m.allocate(data.length);
    copy.set(data);
    buffer.add(c.base.isend(copy, to, m.sendTag(tag)), data.length);
    return c;
  };

  /** A persistent send: what is not one piece is packed at each start. */
  const persistentSend = (sync: boolean): Calls[string] => {
    return (at, count, type, dest, tag, comm, request) => {
      const c = m.comm(comm);
      const datatype = m.committed(type);
      const data = m.outgoing(at, count, datatype);
      const isPacked = data.length > 0 && !memory.holds(data);
      const inner = sync ? c.base.ssendInit(data, m.dest(c, dest), m.sendTag(tag)) : c.base.sendInit(data, m.dest(c, dest), m.sendTag(tag));
      const before = isPacked ? () => void pack(memory, at >>> 0, count, datatype, data) : undefined;
      keep(request, { comm: c, kind: 'send', inner, before, persistent: true });
      return 0;
    };
  };

  const matchedOf = (at: number): Matched | undefined => {
    const handle = memory.int(at);
    if (handle === abi.MESSAGE_NO_PROC) {
      memory.setInt(at, abi.MESSAGE_NULL);
      return undefined;
    }
    const matched = m.messages.find(handle);
    if (matched === undefined) return fail('REQUEST', 'there is no such message');
    m.messages.remove(handle);
    memory.setInt(at, abi.MESSAGE_NULL);
    m.blame(matched.comm);
    return matched;
  };
  const setMatched = (at: number, matched: Matched): void => {
    const isNobody = matched.message.status.source < 0;
    memory.setInt(at, isNobody ? abi.MESSAGE_NO_PROC : m.messages.add(matched));
  };
  const setProbed = (comm: Comm, at: number, found: { source: number; tag: number; bytes: number }): void =>
    m.setStatus(at, m.rankOf(comm, found.source), found.source < 0 ? abi.ANY_TAG : found.tag, found.bytes);

  const sendrecv = (
    c: Comm,
    out: Uint8Array,
    dest: number,
    sendTag: number,
    [at, count, type]: readonly [number, number, Datatype],
    source: number,
    recvTag: number,
    status: number,
  ): void => {
    const sent = c.base.isend(out, m.dest(c, dest), m.sendTag(sendTag));
    receive(c, at, count, type, m.source(c, source), m.recvTag(recvTag), status);
    sent.waitSync();
  };
  const copyOf = (data: Uint8Array): Uint8Array => {
    const copy = m.allocate(data.length);
    copy.set(data);
    return copy;
  };
  /** A send and a receive as one request. */
  const isendrecv = (
    c: Comm,
    out: Uint8Array,
    dest: number,
    sendTag: number,
    [at, count, type]: readonly [number, number, Datatype],
    source: number,
    recvTag: number,
    request: number,
  ): void => {
    const { buffer: into, after } = m.incoming(at, count, type);
    const received = c.base.irecv(into, m.source(c, source), m.recvTag(recvTag));
    const sent = c.base.isend(out, m.dest(c, dest), m.sendTag(sendTag));
    const options: ReqOptions = { comm: c, kind: 'recv', inner: received, after };
    const both = new Req(options);
    both.also = sent;
    both.handle = m.requests.add(both);
    memory.setInt(request, both.handle);
  };
  /** `last`: where the status goes, or the request. */
  const exchange =
    (run: typeof sendrecv): Calls[string] =>
    (at, count, type, dest, sendTag, to, room, into, source, recvTag, comm, last) => {
      const c = m.comm(comm);
      const [sent, taken] = [m.committed(type), m.committed(into)];
      run(c, m.outgoing(at, count, sent), dest, sendTag, [to, room, taken], source, recvTag, last);
      return 0;
    };
  const exchangeInPlace =
    (run: typeof sendrecv): Calls[string] =>
    (at, count, type, dest, sendTag, source, recvTag, comm, last) => {
      const c = m.comm(comm);
      const both = m.committed(type);
      run(c, copyOf(m.outgoing(at, count, both)), dest, sendTag, [at, count, both], source, recvTag, last);
      return 0;
    };

  return {
    Send: send,
    Rsend: send,
    Ssend: (at, count, type, dest, tag, comm) => {
      const c = m.comm(comm);
      const to = m.dest(c, dest);
      c.base.ssendSync(m.outgoing(at, count, m.committed(type)), to, m.sendTag(tag));
      return 0;
    },
    Bsend: (at, count, type, dest, tag, comm) => {
      buffered(at, count, type, dest, tag, comm);
      return 0;
    },
    Recv: (at, count, type, source, tag, comm, status) => {
      const c = m.comm(comm);
      receive(c, at, count, m.committed(type), m.source(c, source), m.recvTag(tag), status);
      return 0;
    },
    Isend: isend,
    Irsend: isend,
    Issend: (at, count, type, dest, tag, comm, request) => {
      const c = m.comm(comm);
      const to = m.dest(c, dest);
      keep(request, { comm: c, kind: 'send', inner: c.base.issend(m.outgoing(at, count, m.committed(type)), to, m.sendTag(tag)) });
      return 0;
    },
    Ibsend: (at, count, type, dest, tag, comm, request) => {
      keep(request, { comm: buffered(at, count, type, dest, tag, comm), kind: 'send', inner: undefined });
      return 0;
    },
    Irecv: (at, count, type, source, tag, comm, request) => {
      const c = m.comm(comm);
      const { buffer: into, after } = m.incoming(at, count, m.committed(type));
      keep(request, { comm: c, kind: 'recv', inner: c.base.irecv(into, m.source(c, source), m.recvTag(tag)), after });
      return 0;
    },
    Send_init: persistentSend(false),
    Rsend_init: persistentSend(false),
    Ssend_init: persistentSend(true),
    Bsend_init: (at, count, type, dest, tag, comm, request) => {
      const c = m.comm(comm);
      m.outgoing(at, count, m.committed(type));
      m.dest(c, dest);
      m.sendTag(tag);
      const before = () => void buffered(at, count, type, dest, tag, comm);
      keep(request, { comm: c, kind: 'send', inner: undefined, before, persistent: true });
      return 0;
    },
    Recv_init: (at, count, type, source, tag, comm, request) => {
      const c = m.comm(comm);
      const { buffer: into, after } = m.incoming(at, count, m.committed(type));
      const inner = c.base.recvInit(into, m.source(c, source), m.recvTag(tag));
      keep(request, { comm: c, kind: 'recv', inner, after, persistent: true });
      return 0;
    },
    Sendrecv: exchange(sendrecv),
    Sendrecv_replace: exchangeInPlace(sendrecv),
    Isendrecv: exchange(isendrecv),
    Isendrecv_replace: exchangeInPlace(isendrecv),

    // -------------------------------------------------------------- probes
    Probe: (source, tag, comm, status) => {
      const c = m.comm(comm);
      setProbed(c, status, c.base.probeSync(m.source(c, source), m.recvTag(tag)));
      return 0;
    },
    Iprobe: (source, tag, comm, flag, status) => {
      const c = m.comm(comm);
      const found = c.base.iprobe(m.source(c, source), m.recvTag(tag));
      memory.setInt(flag, found === undefined ? 0 : 1);
      if (found === undefined) m.idle();
      else setProbed(c, status, found);
      return 0;
    },
    Mprobe: (source, tag, comm, message, status) => {
      const c = m.comm(comm);
      const found = c.base.mprobeSync(m.source(c, source), m.recvTag(tag));
      setProbed(c, status, found.status);
      setMatched(message, { comm: c, message: found });
      return 0;
    },
    Improbe: (source, tag, comm, flag, message, status) => {
      const c = m.comm(comm);
      const found = c.base.improbe(m.source(c, source), m.recvTag(tag));
      memory.setInt(flag, found === undefined ? 0 : 1);
      if (found === undefined) {
        m.idle();
        return 0;
      }
      setProbed(c, status, found.status);
      setMatched(message, { comm: c, message: found });
      return 0;
    },
    Mrecv: (at, count, type, message, status) => {
      const datatype = m.committed(type);
      const matched = matchedOf(message);
      if (matched === undefined) {
        m.setStatus(status, abi.PROC_NULL, abi.ANY_TAG, 0);
        return 0;
      }
      const { buffer: into, after } = m.incoming(at, count, datatype);
      const inner = matched.message.irecv(into);
      try {
        inner.waitSync();
      } finally {
        const got = inner.status;
        if (got !== undefined) {
          after?.(got.bytes);
          m.setStatus(status, m.rankOf(matched.comm, got.source), got.tag, got.bytes);
        }
      }
      return 0;
    },
    Imrecv: (at, count, type, message, request) => {
      const datatype = m.committed(type);
      const matched = matchedOf(message);
      if (matched === undefined) {
        const inner = m.world.base.irecv(m.outgoing(0, 0, datatype), -2);
        keep(request, { comm: m.world, kind: 'recv', inner });
        return 0;
      }
      const { buffer: into, after } = m.incoming(at, count, datatype);
      keep(request, { comm: matched.comm, kind: 'recv', inner: matched.message.irecv(into), after });
      return 0;
    },

    // -------------------------------------------------------------- buffered sends
    Buffer_attach: (at, bytes) => {
      if (buffer.isAttached) throw new MpiError('BUFFER', 'a buffer is attached already: MPI_Buffer_detach first');
      if (bytes < 0) fail('ARG', `the length is ${bytes}`);
      buffer.at = at;
      buffer.bytes = bytes;
      buffer.isAttached = true;
      return 0;
    },
    Buffer_detach: (at, bytes) => {
      if (!buffer.isAttached) fail('BUFFER', 'no buffer is attached');
      buffer.flush();
      memory.setInt(at, buffer.at);
      m.setCount(bytes, buffer.bytes);
      buffer.bytes = 0;
      buffer.isAttached = false;
      return 0;
    },
    Buffer_flush: () => {
      buffer.flush();
      return 0;
    },

    // -------------------------------------------------------------- in parts
    Psend_init: (at, partitions, count, type, dest, tag, comm, _info, request) => {
      const c = m.comm(comm);
      const datatype = m.committed(type);
      const total = partitions * Number(count);
      const to = m.dest(c, dest);
      const sendTag = m.sendTag(tag);
      m.outgoing(at, total, datatype);
      const req = new Req({ comm: c, kind: 'send', inner: undefined, persistent: true });
      let missing = new Set<number>();
      const parts = {
        partitions,
        isWhole: false,
        start: () => {
          missing = new Set(Array.from({ length: partitions }, (_, i) => i));
          parts.isWhole = false;
          req.inner = undefined;
        },
        ready: (partition: number) => {
          if (!missing.delete(partition)) fail('ARG', `partition ${partition} was ready before, or there is none`);
          if (missing.size > 0) return;
          parts.isWhole = true;
          req.inner = c.base.isend(m.outgoing(at, total, datatype), to, sendTag);
        },
      };
      req.partitioned = parts;
      req.handle = m.requests.add(req);
      memory.setInt(request, req.handle);
      return 0;
    },
    Precv_init: (at, partitions, count, type, source, tag, comm, _info, request) => {
      const c = m.comm(comm);
      const { buffer: into, after } = m.incoming(at, partitions * Number(count), m.committed(type));
      const inner = c.base.recvInit(into, m.source(c, source), m.recvTag(tag));
      keep(request, { comm: c, kind: 'recv', inner, after, persistent: true });
      return 0;
    },
  };
}
