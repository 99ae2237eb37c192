// What the bench with peers is to show: which contender against which, at what, and on which side of which ratio. Imports nothing.
const KIB = 1024;
const MIB = 1024 * 1024;

/** A row: subject / reference of one cell. Without a bound it is told and not judged. */
const row = (text, metric, size, subject, reference, bound = {}) => ({ text, metric, size, subject, reference, ...bound });
const atMost = (value) => ({ atMost: value });
const atLeast = (value) => ({ atLeast: value });

/** In the order of the table. `byClass` gives each core class a bound of its own. */
export const TARGETS = [
  row('TCP latency 8 B, sync / Open MPI tcp', 'latency', 8, 'mr-tcp-sync', 'ompi-tcp', atMost(0.9)),
  row('TCP latency 8 B, sync / C spinning', 'latency', 8, 'mr-tcp-sync', 'c-spin', atMost(1.25)),
  row('TCP latency 8 B, promise, bounded spin / C spinning', 'latency', 8, 'mr-tcp-promise', 'c-spin', atMost(1.8)),
  row('TCP latency 8 B, promise, no spin / C blocking', 'latency', 8, 'mr-tcp-promise-idle', 'c-block', atMost(1.3)),
  row('TCP bandwidth 64 KiB / Open MPI tcp', 'bandwidth', 64 * KIB, 'mr-tcp-sync', 'ompi-tcp', atLeast(2)),
  row('TCP bandwidth 1 MiB / C, both cubic', 'bandwidth', MIB, 'mr-tcp-cubic', 'c-spin-cubic', atLeast(0.9)),
  row('TCP bandwidth 1 MiB / C, both at the system’s control', 'bandwidth', MIB, 'mr-tcp-system', 'c-spin', atLeast(0.9)),
  row('TCP bandwidth 1 MiB / Open MPI tcp, both as shipped', 'bandwidth', MIB, 'mr-tcp-sync', 'ompi-tcp', atLeast(1.5)),
  row('TCP bandwidth 1 MiB / Open MPI tcp, both cubic', 'bandwidth', MIB, 'mr-tcp-cubic', 'ompi-tcp-cubic', atLeast(1.1)),
  row('TCP bandwidth 1 MiB / zeromq.js, both as shipped', 'bandwidth', MIB, 'mr-tcp-sync', 'zeromq', atLeast(2.5)),
  row('TCP bandwidth 64 MiB / Open MPI tcp, both cubic', 'bandwidth', 64 * MIB, 'mr-tcp-cubic', 'ompi-tcp-cubic', atLeast(0.95)),
  row('TCP bandwidth 64 MiB / C, both cubic', 'bandwidth', 64 * MIB, 'mr-tcp-cubic', 'c-spin-cubic', atLeast(0.9)),
  row('TCP rate 8 B, isend and irecv / Open MPI tcp', 'rate', 8, 'mr-tcp-sync', 'ompi-tcp', atLeast(10)),
  row('TCP rate 8 B, isend and irecv / zeromq.js', 'rate', 8, 'mr-tcp-sync', 'zeromq', atLeast(15)),
  row('TCP rate 8 B, isend and irecv / node:net with cork', 'rate', 8, 'mr-tcp-sync', 'net', atLeast(3)),
  row('TCP rate 8 B, sendSync and recvSync / Open MPI tcp', 'rate', 8, 'mr-tcp-rate', 'ompi-tcp', atLeast(10)),
  row('TCP rate 8 B, sendSync and recvSync / zeromq.js', 'rate', 8, 'mr-tcp-rate', 'zeromq', atLeast(15)),
  row('TCP rate 8 B, sendSync and recvSync / node:net with cork', 'rate', 8, 'mr-tcp-rate', 'net', atLeast(3)),
  row('shared memory latency 8 B, sync / Open MPI vader', 'latency', 8, 'mr-sm-sync', 'ompi-vader', atMost(1.5)),
  row('shared memory rate 8 B, isend and irecv / Open MPI vader', 'rate', 8, 'mr-sm-sync', 'ompi-vader', atLeast(0.8)),
  row('shared memory rate 8 B, sendSync and recvSync / Open MPI vader', 'rate', 8, 'mr-sm-rate', 'ompi-vader', atLeast(0.8)),
  row('shared memory bandwidth 64 KiB / Open MPI vader', 'bandwidth', 64 * KIB, 'mr-sm-sync', 'ompi-vader', {
    byClass: { near: atLeast(1.3), far: atLeast(1) },
  }),
  row('shared memory bandwidth 1 MiB / Open MPI vader', 'bandwidth', MIB, 'mr-sm-sync', 'ompi-vader', {
    byClass: { near: atLeast(1.3), far: atLeast(1) },
  }),
  row('rails 400 + 400 Mbit/s: all / one', 'bandwidth', MIB, 'rails-400+400-mr-all', 'rails-400+400-mr-one', atLeast(1.95)),
  row('rails 400 + 100 Mbit/s: all / the fast one', 'bandwidth', MIB, 'rails-400+100-mr-all', 'rails-400+100-mr-one', atLeast(1.19)),
  // 0.95 of the sum, which is 1.5 times the fast one.
  row(
    'rails 1000 + 400 + 100 Mbit/s: all / the fast one (0.95 × the sum)',
    'bandwidth',
    MIB,
    'rails-1000+400+100-mr-all',
    'rails-1000+400+100-mr-one',
    atLeast(1.425),
  ),
];

/** Told beside the targets. */
export const COMPARISONS = [
  row('TCP latency 8 B, sync / MPICH tcp', 'latency', 8, 'mr-tcp-sync', 'mpich-tcp'),
  row('TCP latency 8 B, promise, no native part / node:net', 'latency', 8, 'mr-tcp-net', 'net'),
  row('TCP latency 8 B, promise / zeromq.js', 'latency', 8, 'mr-tcp-promise', 'zeromq'),
  row('TCP bandwidth 64 KiB / C, one send a window, both cubic', 'bandwidth', 64 * KIB, 'mr-tcp-cubic', 'c-batch-cubic'),
  row('TCP bandwidth 64 KiB / Open MPI tcp, both cubic', 'bandwidth', 64 * KIB, 'mr-tcp-cubic', 'ompi-tcp-cubic'),
  row('TCP bandwidth 1 MiB / Open MPI tcp, both at the system’s control', 'bandwidth', MIB, 'mr-tcp-system', 'ompi-tcp'),
  row('TCP bandwidth 1 MiB / MPICH tcp, both cubic', 'bandwidth', MIB, 'mr-tcp-cubic', 'mpich-tcp-cubic'),
  row('TCP bandwidth 1 MiB / zeromq.js, both cubic', 'bandwidth', MIB, 'mr-tcp-cubic', 'zeromq-cubic'),
  row('TCP bandwidth 1 MiB / node:net, both cubic', 'bandwidth', MIB, 'mr-tcp-cubic', 'net-cubic'),
  row('TCP bandwidth 1 MiB, promise / node:net, both as shipped', 'bandwidth', MIB, 'mr-tcp-promise', 'net'),
  row('TCP bandwidth 1 MiB / ws, both as shipped', 'bandwidth', MIB, 'mr-tcp-sync', 'ws'),
  row('TCP bandwidth 1 MiB / iperf3 -l 1M, both cubic', 'bandwidth', MIB, 'mr-tcp-cubic', 'iperf3-cubic'),
  row('TCP rate 8 B, isend and irecv / C, one send a window', 'rate', 8, 'mr-tcp-sync', 'c-batch'),
  row('shared memory latency 8 B, sync / C ring', 'latency', 8, 'mr-sm-sync', 'c-shm'),
  row('shared memory bandwidth 1 MiB / MPICH', 'bandwidth', MIB, 'mr-sm-sync', 'mpich-shm'),
  row('rails 400 + 400 Mbit/s: multirail / MPTCP', 'bandwidth', MIB, 'rails-400+400-mr-all', 'rails-400+400-mptcp'),
  row('rails 400 + 100 Mbit/s: multirail / MPTCP', 'bandwidth', MIB, 'rails-400+100-mr-all', 'rails-400+100-mptcp'),
  row('rails 1000 + 400 + 100 Mbit/s: multirail / MPTCP', 'bandwidth', MIB, 'rails-1000+400+100-mr-all', 'rails-1000+400+100-mptcp'),
  row('rails 400 + 100 Mbit/s: MPTCP / C over the fast one', 'bandwidth', MIB, 'rails-400+100-mptcp', 'rails-400+100-tcp'),
];
