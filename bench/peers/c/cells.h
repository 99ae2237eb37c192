// The measuring scheme that every C program here shares, OSU's: ping-pong for latency; for bandwidth a window of messages and one
// small acknowledgement. Rank 0 decides how often, by time, and tells rank 1 in an 8-byte order before each batch.
// ranks/cells.mjs is the same scheme for the Node programs: change both.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define BYTES_MAX ((size_t)64 << 20)
#define SMALL_BYTES_MAX 65536
#define WINDOW_MAX 64
#define REPEATS_MAX 5
#define CHECK_BYTES 100003
enum { LATENCY = 0, BANDWIDTH = 1 };

// One side of a pair. Windows exist apart from single messages because some contenders send one in a single call.
typedef struct {
  int rank;
  void (*send)(const char *, size_t);
  void (*receive)(char *, size_t);
  void (*send_window)(const char *, size_t, int);
  void (*receive_window)(char *, size_t, int);
} side;

typedef struct {
  uint32_t count; // units to do; 0 = the program is over
  uint32_t metric : 8, bytes_log2 : 24;
} order;

static inline double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static inline void fail(const char *what) {
  perror(what);
  exit(1);
}

static inline int window_of(size_t bytes) { return bytes >= BYTES_MAX ? 8 : WINDOW_MAX; }

static inline char *allocate(size_t bytes, int value) {
  char *p = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) fail("mmap");
  memset(p, value, bytes);
  return p;
}

// `metric` and `bytes` once per unit: a round trip, or a window and its acknowledgement.
static void units(const side *s, int metric, size_t bytes, uint32_t count, char *out, char *in) {
  char ack[8] = {0};
  int window = window_of(bytes);
  for (uint32_t i = 0; i < count; i++) {
    if (metric == LATENCY && s->rank == 0) s->send(out, bytes), s->receive(in, bytes);
    else if (metric == LATENCY) s->receive(in, bytes), s->send(out, bytes);
    else if (s->rank == 0) s->send_window(out, bytes, window), s->receive(ack, 8);
    else s->receive_window(in, bytes, window), s->send(ack, 8);
  }
}

static double batch_s(const side *s, int metric, size_t bytes, uint32_t count, char *out, char *in) {
  order o = {count, (uint32_t)metric, (uint32_t)__builtin_ctzll(bytes)};
  char ready[8];
  s->send((char *)&o, 8);
  s->receive(ready, 8);
  double start = now_s();
  units(s, metric, bytes, count, out, in);
  return now_s() - start;
}

static int ascending(const void *a, const void *b) { return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b); }

static void cell(const side *s, int metric, size_t bytes, char *out, char *in) {
  int small = bytes <= SMALL_BYTES_MAX, per_unit = metric == LATENCY ? 1 : window_of(bytes);
  double least = small ? 0.1 : 0, most = small ? 0.3 : 0.1, spent = 0, last = 0;
  uint64_t done = 0;
  uint32_t count = 1;
  // Warm-up: until it is hot, by count or by time. The last batch says how many units fill a repeat.
  for (;;) {
    last = batch_s(s, metric, bytes, count, out, in);
    spent += last;
    done += count;
    if (spent >= most || (spent >= least && done * per_unit >= 20000)) break;
    if (last < 0.02) count *= 2;
  }
  double each = last / count, repeats[REPEATS_MAX], start = now_s();
  count = each > 0.06 ? 1 : (uint32_t)(0.06 / each) + 1;
  int n = 0;
  while (n < REPEATS_MAX && (n < 3 || now_s() - start < 0.6)) repeats[n++] = batch_s(s, metric, bytes, count, out, in) / count;
  qsort(repeats, n, sizeof *repeats, ascending);
  double median = n % 2 ? repeats[n / 2] : (repeats[n / 2 - 1] + repeats[n / 2]) / 2;
  if (metric == LATENCY) printf("{\"metric\":\"latency\",\"size\":%zu,\"value\":%.5g}\n", bytes, median / 2 * 1e6);
  else {
    printf("{\"metric\":\"bandwidth\",\"size\":%zu,\"value\":%.6g}\n", bytes, per_unit * (double)bytes / median / 1e6);
    if (bytes == 8) printf("{\"metric\":\"rate\",\"size\":8,\"value\":%.6g}\n", per_unit / median);
  }
  fflush(stdout);
}

// Before anything is timed: a pattern goes there and back, and is looked at on both sides.
static void check(const side *s, char *out, char *in) {
  for (size_t i = 0; i < CHECK_BYTES; i++) out[i] = (char)(i * 131 + (i >> 8) + s->rank);
  if (s->rank == 0) s->send(out, CHECK_BYTES), s->receive(in, CHECK_BYTES);
  else s->receive(in, CHECK_BYTES), s->send(out, CHECK_BYTES);
  for (size_t i = 0; i < CHECK_BYTES; i++) {
    if (in[i] == (char)(i * 131 + (i >> 8) + 1 - s->rank)) continue;
    fprintf(stderr, "rank %d: byte %zu of the pattern is wrong\n", s->rank, i);
    exit(1);
  }
  memset(out, 1, CHECK_BYTES);
}

// The sizes that a variable of the environment lists: bytes, powers of two, comma separated; none when it is empty.
static size_t next_size(const char **at) {
  if (**at == 0) return 0;
  char *end;
  size_t bytes = strtoull(*at, &end, 10);
  if (end == *at || bytes < 8 || bytes > BYTES_MAX || (bytes & (bytes - 1)) || (*end != 0 && *end != ',')) {
    fprintf(stderr, "sizes: powers of two from 8 bytes to 64 MiB, not \"%s\"\n", *at);
    exit(2);
  }
  *at = *end == ',' ? end + 1 : end;
  return bytes;
}

// All cells that PEERS_LATENCY and PEERS_BANDWIDTH ask for.
static void run_cells(const side *s) {
  char *out = allocate(BYTES_MAX, 1), *in = allocate(BYTES_MAX, 1);
  check(s, out, in);
  if (s->rank != 0) {
    for (;;) {
      order o;
      s->receive((char *)&o, 8);
      if (o.count == 0) return;
      s->send((char *)&o, 8);
      units(s, o.metric, (size_t)1 << o.bytes_log2, o.count, out, in);
    }
  }
  static const char *const lists[] = {[LATENCY] = "PEERS_LATENCY", [BANDWIDTH] = "PEERS_BANDWIDTH"};
  for (int metric = LATENCY; metric <= BANDWIDTH; metric++) {
    const char *at = getenv(lists[metric]);
    if (at == NULL) at = "8,1024,8192,65536,1048576,8388608,67108864";
    for (size_t bytes; (bytes = next_size(&at)) > 0;) cell(s, metric, bytes, out, in);
  }
  order over = {0, 0, 0};
  s->send((char *)&over, 8);
}
