// Tags of the benchmarks' messages.

export const BENCH_TAGS = { data: 1, ack: 2, meet: 3, report: 4, start: 5 } as const;
