// The timed loops of the point-to-point tests with blocking calls: the same steps as in pt2pt.ts, without a promise anywhere.
import type { Communicator } from '../../src/mpi/communicator.ts';
import { Request } from '../../src/mpi/request.ts';
import { latencyUs, megabytesPerSecond, type OsuRepeats, type OsuTest } from './osu.ts';
import { BENCH_TAGS } from './tags.ts';

const ACK_BYTES = 4;

type MeasureSync = (comm: Communicator, out: Uint8Array, into: Uint8Array, repeats: OsuRepeats, window: number) => number[];

/** `rate` gives each rank's own time; the caller finds the slowest. */
export const SYNC_TESTS: Record<Exclude<OsuTest, 'rate'>, MeasureSync> = {
  latency: (comm, out, into, { iterations, warmup }) => {
    const { data } = BENCH_TAGS;
    const peer = 1 - comm.rank;
    let startMs = performance.now();
    for (let i = 0; i < warmup + iterations; i++) {
      if (i === warmup) startMs = performance.now();
      if (comm.rank === 0) {
        comm.sendSync(out, peer, data);
        comm.recvSync(into, peer, data);
      } else {
        comm.recvSync(into, peer, data);
        comm.sendSync(out, peer, data);
      }
    }
    return [latencyUs(performance.now() - startMs, iterations)];
  },

  bw: (comm, out, into, repeats, window) => {
    const elapsedMs = comm.rank === 0 ? sendWindowsSync(comm, 1, out, repeats, window) : receiveWindowsSync(comm, 0, into, repeats, window);
    return [megabytesPerSecond(out.length * window * repeats.iterations, elapsedMs)];
  },

  bibw: (comm, out, into, { iterations, warmup }, window) => {
    const { data, ack } = BENCH_TAGS;
    const peer = 1 - comm.rank;
    const small = new Uint8Array(ACK_BYTES);
    let startMs = performance.now();
    for (let i = 0; i < warmup + iterations; i++) {
      if (i === warmup) startMs = performance.now();
      const requests: Request[] = [];
      for (let j = 0; j < window; j++) requests.push(comm.irecv(into, peer, data));
      for (let j = 0; j < window; j++) requests.push(comm.isend(out, peer, data));
      Request.waitAllSync(requests);
      if (comm.rank === 0) comm.recvSync(small, peer, ack);
      else comm.sendSync(small, peer, ack);
    }
    return [megabytesPerSecond(2 * out.length * window * iterations, performance.now() - startMs)];
  },
};

export function sendWindowsSync(comm: Communicator, peer: number, out: Uint8Array, repeats: OsuRepeats, window: number): number {
  const { data, ack } = BENCH_TAGS;
  const small = new Uint8Array(ACK_BYTES);
  const requests: Request[] = new Array(window);
  let startMs = performance.now();
  for (let i = 0; i < repeats.warmup + repeats.iterations; i++) {
    if (i === repeats.warmup) startMs = performance.now();
    for (let j = 0; j < window; j++) requests[j] = comm.isend(out, peer, data);
    Request.waitAllSync(requests);
    comm.recvSync(small, peer, ack);
  }
  return performance.now() - startMs;
}

export function receiveWindowsSync(comm: Communicator, peer: number, into: Uint8Array, repeats: OsuRepeats, window: number): number {
  const { data, ack } = BENCH_TAGS;
  const small = new Uint8Array(ACK_BYTES);
  const requests: Request[] = new Array(window);
  let startMs = performance.now();
  for (let i = 0; i < repeats.warmup + repeats.iterations; i++) {
    if (i === repeats.warmup) startMs = performance.now();
    for (let j = 0; j < window; j++) requests[j] = comm.irecv(into, peer, data);
    Request.waitAllSync(requests);
    comm.sendSync(small, peer, ack);
  }
  return performance.now() - startMs;
}
