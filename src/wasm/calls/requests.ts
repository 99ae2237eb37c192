// Waits, tests, and what else is done with requests.
import type { MultirailError } from '../../errors.ts';
import { Request } from '../../mpi/request.ts';
import * as abi from '../abi.ts';
import { fail, mpiErrorOf } from '../errors.ts';
import { type Calls, hex, type Machine } from '../machine.ts';
import { Req } from '../req.ts';

const ERR_IN_STATUS = abi.CLASSES.IN_STATUS[0];
const ERR_PENDING = abi.CLASSES.PENDING[0];
/** Offset of MPI_ERROR in a status, and its length. */
const ERROR_AT = 8;
const STATUS_BYTES = 32;
/** In place of an index. */
const NONE_ENDED = -1;
const ALL_IDLE = -2;

export function requests(m: Machine): Calls {
  const { memory } = m;

  const find = (handle: number): Req | undefined => {
    if (handle === abi.REQUEST_NULL) return undefined;
    return m.requests.find(handle) ?? fail('REQUEST', `there is no request 0x${hex(handle)}`);
  };
  /** Null, or persistent and not started: there is nothing to wait for. */
  const isIdle = (request: Req | undefined): request is undefined => request === undefined || (request.persistent && !request.active);
  const checkCount = (count: number): void => {
    if (count < 0) fail('COUNT', `the count is ${count}`);
  };
  const listOf = (count: number, at: number): (Req | undefined)[] => {
    checkCount(count);
    return memory.ints(at, count).map(find);
  };
  /** The first of them that has ended, or NONE_ENDED, or ALL_IDLE. Makes no list: programs call MPI_Testany again and again. */
  const firstEnded = (count: number, at: number): number => {
    let found = ALL_IDLE;
    for (let i = 0; i < count; i++) {
      const request = find(memory.int(at + 4 * i));
      if (isIdle(request)) continue;
      if ((request as Req).done) return i;
      found = NONE_ENDED;
    }
    return found;
  };

  /** Why it has failed, as far as it has ended; undefined: well, or not at all. */
  const failureOf = (request: Req): MultirailError | undefined => {
    const { inner, also } = request;
    return inner?.error ?? (also?.state === 'DONE' ? also.error : undefined);
  };
  const isCancelled = (error: MultirailError | undefined): boolean => error?.code === 'ERR_CANCELLED';

  /** Takes an ended request: its data, its status, its handle. Returns its error code. */
  const take = (request: Req, at: number, status: number): number => {
    m.blame(request.comm);
    const { generalized, inner } = request;
    if (generalized !== undefined) return takeOwn(request, at, status);
    const error = failureOf(request);
    const cancelled = isCancelled(error);
    const got = inner?.status;
    if (request.kind === 'recv' && got !== undefined && !cancelled) {
      if (!request.isUnpacked) request.after?.(got.bytes);
      request.isUnpacked = true;
      if (request.comm !== undefined)
        m.setStatus(status, m.rankOf(request.comm, got.source), got.source < 0 ? abi.ANY_TAG : got.tag, got.bytes);
    } else {
      if (error === undefined && !request.isUnpacked) request.after?.(0);
      request.isUnpacked = true;
      m.setStatus(status, abi.ANY_SOURCE, abi.ANY_TAG, 0, cancelled);
    }
    end(request, at);
    if (error === undefined || cancelled) return 0;
    const wrong = mpiErrorOf(error);
    m.note(wrong);
    return wrong.code;
  };

  const end = (request: Req, at: number): void => {
    if (request.persistent) {
      request.active = false;
      return;
    }
    m.requests.remove(request.handle);
    if (at !== 0) memory.setInt(at, abi.REQUEST_NULL);
  };

  /** One of the program's own: it says itself what its status is. */
  const takeOwn = (request: Req, at: number, status: number): number => {
    const { query, free, extra } = request.generalized as NonNullable<Req['generalized']>;
    const code = m.withMemory(STATUS_BYTES, (own) => {
      m.emptyStatus(own);
      const result = m.callback(query, extra, own);
      if (status !== 0) memory.bytes.copyWithin(status, own, own + STATUS_BYTES);
      return result;
    });
    end(request, at);
    return m.callback(free, extra) || code;
  };

  /** What of these is under way in the library; undefined: some ends by calls of the program. */
  const underWay = (open: readonly Req[]): Request[] | undefined => {
    const inners: Request[] = [];
    for (const { inner, also, generalized, partitioned } of open) {
      if (generalized?.isComplete === false || partitioned?.isWhole === false) return undefined;
      if (inner?.state === 'ACTIVE') inners.push(inner);
      if (also?.state === 'ACTIVE') inners.push(also);
    }
    return inners;
  };

  /** Blocks until `look` answers true; `wait` waits for some of what is under way, or for all of it. */
  const waitUntil = (list: readonly Req[], look: () => boolean, wait: (inners: Request[]) => void): void => {
    while (!look()) {
      const inners = underWay(list);
      if (inners !== undefined && inners.length > 0) wait(inners);
      else m.runtime.progressSync(1);
      for (const request of list) {
        const pending = pendingFailure(request);
        if (pending !== undefined) throw pending;
      }
    }
  };
  const forOne = (inners: Request[]): void => Request.untilOneEnds(inners);
  const forAll = (inners: Request[]): void => Request.untilAllEnd(inners);

  /** A receive from anybody that reports a failure stays active. */
  const pendingFailure = (request: Req): MultirailError | undefined =>
    request.inner?.state === 'ACTIVE' ? request.inner.error : undefined;

  const wait = (request: Req, at: number, status: number): number => {
    m.blame(request.comm);
    if (!request.done) waitUntil([request], () => request.done, forAll);
    return take(request, at, status);
  };
  const look = (): void => {
    m.runtime.progressSync();
  };
  const raised = (code: number): number => (code === 0 ? 0 : m.raiseCode(code));

  /** Statuses of all, each with its error; MPI_ERR_IN_STATUS where one failed. */
  const takeAll = (list: readonly (Req | undefined)[], at: number, statuses: number): number => {
    const codes = list.map((request, i) => {
      const status = statuses === 0 ? 0 : statuses + i * STATUS_BYTES;
      if (isIdle(request)) {
        m.emptyStatus(status);
        return 0;
      }
      return (request as Req).done ? take(request as Req, at + i * 4, status) : ERR_PENDING;
    });
    if (codes.every((code) => code === 0)) return 0;
    if (statuses !== 0) for (const [i, code] of codes.entries()) memory.setInt(statuses + i * STATUS_BYTES + ERROR_AT, code);
    return m.raiseCode(ERR_IN_STATUS, list.find((request) => request?.comm !== undefined)?.comm);
  };

  const statusAt = (statuses: number, i: number): number => (statuses === 0 ? 0 : statuses + i * STATUS_BYTES);

  const takeSome = (list: readonly (Req | undefined)[], at: number, outcount: number, indices: number, statuses: number): number => {
    const ended = list.flatMap((request, i) => (!isIdle(request) && (request as Req).done ? [i] : []));
    const codes = ended.map((i, n) => take(list[i] as Req, at + i * 4, statusAt(statuses, n)));
    memory.setInt(outcount, ended.length);
    memory.setInts(indices, ended);
    if (codes.every((code) => code === 0)) return 0;
    if (statuses !== 0) for (const [n, code] of codes.entries()) memory.setInt(statusAt(statuses, n) + ERROR_AT, code);
    return m.raiseCode(ERR_IN_STATUS, list[ended[0]]?.comm);
  };

  /** Looks whether it has ended, and says so in `flag`. True: there was nothing to end, and `status` is empty. */
  const isIdleNow = (request: Req | undefined, flag: number, status: number): boolean => {
    const idle = isIdle(request);
    if (idle) m.emptyStatus(status);
    else if (!(request as Req).done) look();
    memory.setInt(flag, idle || (request as Req).done ? 1 : 0);
    return idle;
  };

  return {
    Wait: (at, status) => {
      const request = find(memory.int(at));
      if (isIdle(request)) {
        m.emptyStatus(status);
        return 0;
      }
      return raised(wait(request as Req, at, status));
    },
    Test: (at, flag, status) => {
      const request = find(memory.int(at)) as Req;
      if (isIdleNow(request, flag, status)) return 0;
      if (request.done) return raised(take(request, at, status));
      const pending = pendingFailure(request);
      m.blame(request.comm);
      if (pending !== undefined) throw pending;
      m.idle();
      return 0;
    },
    Waitall: (count, at, statuses) => {
      const list = listOf(count, at);
      const open = list.filter((request) => !isIdle(request)) as Req[];
      waitUntil(open, () => open.every((request) => request.done) || open.some((request) => request.done && isBad(request)), forAll);
      return takeAll(list, at, statuses);
    },
    Testall: (count, at, flag, statuses) => {
      const list = listOf(count, at);
      const open = list.filter((request) => !isIdle(request)) as Req[];
      if (!open.every((request) => request.done)) look();
      const all = open.every((request) => request.done);
      memory.setInt(flag, all ? 1 : 0);
      if (all) return takeAll(list, at, statuses);
      m.idle();
      return 0;
    },
    Waitany: (count, at, index, status) => {
      checkCount(count);
      let i = firstEnded(count, at);
      if (i === ALL_IDLE) {
        memory.setInt(index, abi.UNDEFINED);
        m.emptyStatus(status);
        return 0;
      }
      if (i === NONE_ENDED) {
        const open = listOf(count, at).filter((request) => !isIdle(request)) as Req[];
        waitUntil(open, () => open.some((request) => request.done), forOne);
        i = firstEnded(count, at);
      }
      memory.setInt(index, i);
      return raised(take(find(memory.int(at + i * 4)) as Req, at + i * 4, status));
    },
    Testany: (count, at, index, flag, status) => {
      checkCount(count);
      let i = firstEnded(count, at);
      if (i === NONE_ENDED) {
        look();
        i = firstEnded(count, at);
      }
      memory.setInt(flag, i === NONE_ENDED ? 0 : 1);
      memory.setInt(index, i < 0 ? abi.UNDEFINED : i);
      if (i >= 0) return raised(take(find(memory.int(at + i * 4)) as Req, at + i * 4, status));
      if (i === ALL_IDLE) m.emptyStatus(status);
      else m.idle();
      return 0;
    },
    Waitsome: (count, at, outcount, indices, statuses) => {
      const list = listOf(count, at);
      const open = list.filter((request) => !isIdle(request)) as Req[];
      if (open.length === 0) {
        memory.setInt(outcount, abi.UNDEFINED);
        return 0;
      }
      waitUntil(open, () => open.some((request) => request.done), forOne);
      return takeSome(list, at, outcount, indices, statuses);
    },
    Testsome: (count, at, outcount, indices, statuses) => {
      const list = listOf(count, at);
      if (list.every((request) => isIdle(request))) {
        memory.setInt(outcount, abi.UNDEFINED);
        return 0;
      }
      look();
      const code = takeSome(list, at, outcount, indices, statuses);
      if (memory.int(outcount) === 0) m.idle();
      return code;
    },

    Start: (at) => {
      start(find(memory.int(at)));
      return 0;
    },
    Startall: (count, at) => {
      for (const request of listOf(count, at)) start(request);
      return 0;
    },
    Request_free: (at) => {
      const request = find(memory.int(at));
      if (request === undefined) return fail('REQUEST', 'the request is MPI_REQUEST_NULL');
      memory.setInt(at, abi.REQUEST_NULL);
      m.requests.remove(request.handle);
      const { generalized, inner } = request;
      if (generalized !== undefined) return generalized.isComplete ? m.callback(generalized.free, generalized.extra) : 0;
      // What comes is unpacked all the same.
      if (request.active && inner?.state === 'ACTIVE' && request.after !== undefined)
        inner.onEnd(() => {
          if (inner.error === undefined) request.after?.(inner.status?.bytes ?? 0);
        });
      return 0;
    },
    Request_get_status: (handle, flag, status) => {
      const request = find(handle) as Req;
      if (isIdleNow(request, flag, status)) return 0;
      if (!request.done) {
        m.idle();
        return 0;
      }
      const { generalized, inner } = request;
      if (generalized !== undefined) {
        if (status === 0)
          return m.withMemory(STATUS_BYTES, (own) => {
            m.emptyStatus(own);
            return m.callback(generalized.query, generalized.extra, own);
          });
        m.emptyStatus(status);
        return m.callback(generalized.query, generalized.extra, status);
      }
      const got = inner?.status;
      const cancelled = isCancelled(failureOf(request));
      if (request.kind === 'recv' && got !== undefined && !cancelled && request.comm !== undefined) {
        if (!request.isUnpacked) request.after?.(got.bytes);
        request.isUnpacked = true;
        m.setStatus(status, m.rankOf(request.comm, got.source), got.source < 0 ? abi.ANY_TAG : got.tag, got.bytes);
      } else m.setStatus(status, abi.ANY_SOURCE, abi.ANY_TAG, 0, cancelled);
      return 0;
    },
    Cancel: (at) => {
      const request = find(memory.int(at));
      if (request === undefined) return fail('REQUEST', 'the request is MPI_REQUEST_NULL');
      m.blame(request.comm);
      const { generalized } = request;
      if (generalized !== undefined) return m.callback(generalized.cancel, generalized.extra, generalized.isComplete ? 1 : 0);
      if (request.kind === 'other') fail('REQUEST', 'a collective cannot be cancelled');
      // A send has its place in the order of messages from the start: it is not taken back, and its status says so.
      request.inner?.cancel();
      return 0;
    },
    Test_cancelled: (status, flag) => {
      memory.setInt(flag, memory.int(status + 20));
      return 0;
    },

    Grequest_start: (query, free, cancel, extra, at) => {
      const request = new Req({ comm: undefined, kind: 'other', inner: undefined });
      request.generalized = { query, free, cancel, extra, isComplete: false };
      request.handle = m.requests.add(request);
      memory.setInt(at, request.handle);
      return 0;
    },
    Grequest_complete: (handle) => {
      const { generalized } = find(handle) ?? fail('REQUEST', 'the request is MPI_REQUEST_NULL');
      if (generalized === undefined) return fail('REQUEST', 'it is no generalized request');
      generalized.isComplete = true;
      return 0;
    },

    Pready: (partition, handle) => {
      partsOf(handle).ready(partition);
      return 0;
    },
    Pready_range: (low, high, handle) => {
      for (let i = low; i <= high; i++) partsOf(handle).ready(i);
      return 0;
    },
    Pready_list: (count, at, handle) => {
      for (const i of memory.ints(at, count)) partsOf(handle).ready(i);
      return 0;
    },
    Parrived: (handle, _partition, flag) => {
      const request = find(handle) as Req;
      if (isIdle(request)) {
        memory.setInt(flag, 1);
        return 0;
      }
      if (!request.done) look();
      if (request.done && !request.isUnpacked) {
        request.after?.(request.inner?.status?.bytes ?? 0);
        request.isUnpacked = true;
      }
      memory.setInt(flag, request.done ? 1 : 0);
      if (!request.done) m.idle();
      return 0;
    },
  };

  function isBad(request: Req): boolean {
    const error = failureOf(request);
    return error !== undefined && !isCancelled(error);
  }

  function start(request: Req | undefined): void {
    if (request === undefined || !request.persistent) return fail('REQUEST', 'the request is not persistent');
    m.blame(request.comm);
    if (request.active) return fail('REQUEST', 'the request was started, and nobody has waited for its end');
    request.start();
  }

  function partsOf(handle: number): NonNullable<Req['partitioned']> {
    const request = find(handle);
    m.blame(request?.comm);
    if (request?.partitioned === undefined || !request.active) return fail('REQUEST', 'it is no partitioned send that was started');
    return request.partitioned;
  }
}
