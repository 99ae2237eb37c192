// What the machine can do without a library: a pair of processes over one TCP connection, or over a ring in shared memory.
//   pair spin|block|batch|shm [--cubic] [--unpinned] [--namespaces A B ADDRESS] [--mptcp]
// spin: non-blocking calls, polled; block: calls that sleep; batch: as spin, with one send per window up to 64 KiB messages;
// shm: a byte ring of 1 MiB per direction. Rank r is pinned to CPU r unless --unpinned. With --namespaces rank 0 is in network
// namespace A and rank 1, at ADDRESS, in B; --mptcp takes Multipath TCP.
#include "cells.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#define SOCKET_BUFFER_BYTES (4 << 20)
#define RING_BYTES ((size_t)1 << 20)
#define CHUNK_BYTES 32768

static int fd;
static const char *congestion;
static int protocol = IPPROTO_TCP;

// Sockets belong to the namespace in which they were made.
static void enter(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "/run/netns/%s", name);
  int netns = open(path, O_RDONLY | O_CLOEXEC);
  if (netns < 0 || setns(netns, CLONE_NEWNET)) fail(path);
  close(netns);
}

static void tune(int socket_fd) {
  int one = 1, bytes = SOCKET_BUFFER_BYTES;
  setsockopt(socket_fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(socket_fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  setsockopt(socket_fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  if (congestion != NULL && setsockopt(socket_fd, IPPROTO_TCP, TCP_CONGESTION, congestion, strlen(congestion))) fail("TCP_CONGESTION");
}

static void socket_send(const char *p, size_t n) {
  while (n > 0) {
    ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) fail("send");
    if (sent > 0) p += sent, n -= sent;
  }
}

static void socket_receive(char *p, size_t n) {
  while (n > 0) {
    ssize_t got = recv(fd, p, n, 0);
    if (got == 0) exit(1);
    if (got < 0 && errno != EAGAIN) fail("recv");
    if (got > 0) p += got, n -= got;
  }
}

// Each index has its cache line, and is written by one side only.
typedef struct {
  _Alignas(128) uint64_t written;
  _Alignas(128) uint64_t read;
  _Alignas(128) char data[RING_BYTES];
} ring;
static ring *to_peer, *from_peer;
static uint64_t peer_read, peer_written; // last seen

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static void ring_send(const char *p, size_t n) {
  uint64_t written = to_peer->written;
  while (n > 0) {
    size_t space;
    while ((space = RING_BYTES - (written - peer_read)) == 0) peer_read = __atomic_load_n(&to_peer->read, __ATOMIC_ACQUIRE);
    size_t at = written & (RING_BYTES - 1), part = least(least(n, space), least(CHUNK_BYTES, RING_BYTES - at));
    memcpy(to_peer->data + at, p, part);
    p += part, n -= part, written += part;
    __atomic_store_n(&to_peer->written, written, __ATOMIC_RELEASE);
  }
}

static void ring_receive(char *p, size_t n) {
  uint64_t read = from_peer->read;
  while (n > 0) {
    size_t there;
    while ((there = peer_written - read) == 0) peer_written = __atomic_load_n(&from_peer->written, __ATOMIC_ACQUIRE);
    size_t at = read & (RING_BYTES - 1), part = least(least(n, there), least(CHUNK_BYTES, RING_BYTES - at));
    memcpy(p, from_peer->data + at, part);
    p += part, n -= part, read += part;
    __atomic_store_n(&from_peer->read, read, __ATOMIC_RELEASE);
  }
}

static side self;
static int batches;

static void send_window(const char *p, size_t bytes, int count) {
  if (batches && bytes <= SMALL_BYTES_MAX) self.send(p, bytes * count);
  else
    for (int i = 0; i < count; i++) self.send(p, bytes);
}

static void receive_window(char *p, size_t bytes, int count) {
  if (batches && bytes <= SMALL_BYTES_MAX) self.receive(p, bytes * count);
  else
    for (int i = 0; i < count; i++) self.receive(p, bytes);
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  int pinned = 1;
  const char *namespace_a = NULL, *namespace_b = NULL, *target = "127.0.0.1";
  for (int i = 2; i < argc; i++) {
    if (!strcmp(argv[i], "--cubic")) congestion = "cubic";
    else if (!strcmp(argv[i], "--unpinned")) pinned = 0;
    else if (!strcmp(argv[i], "--mptcp")) protocol = IPPROTO_MPTCP;
    else if (!strcmp(argv[i], "--namespaces") && i + 3 < argc) namespace_a = argv[i + 1], namespace_b = argv[i + 2], target = argv[i + 3], i += 3;
    else return fprintf(stderr, "unknown option %s\n", argv[i]), 2;
  }
  batches = !strcmp(mode, "batch");
  int is_shm = !strcmp(mode, "shm"), spins = batches || !strcmp(mode, "spin");
  if (!is_shm && !spins && strcmp(mode, "block")) return fprintf(stderr, "usage: pair spin|block|batch|shm [--cubic] [--unpinned] [--namespaces A B ADDRESS] [--mptcp]\n"), 2;
  ring *rings = mmap(0, 2 * sizeof(ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (rings == MAP_FAILED) fail("mmap");
  memset(rings, 0, 2 * sizeof(ring));
  // Further paths of Multipath TCP join at other addresses: the listener takes them all.
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {namespace_b == NULL ? htonl(INADDR_LOOPBACK) : htonl(INADDR_ANY)}};
  socklen_t length = sizeof address;
  if (namespace_b != NULL) enter(namespace_b);
  int listener = socket(AF_INET, SOCK_STREAM, protocol);
  if (listener < 0) fail("socket");
  tune(listener);
  if (bind(listener, (void *)&address, sizeof address) || listen(listener, 1)) fail("listen");
  getsockname(listener, (void *)&address, &length);
  pid_t child = fork();
  if (child < 0) fail("fork");
  if (child > 0 && namespace_a != NULL) enter(namespace_a);
  int rank = child == 0;
  if (pinned) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(rank, &set);
    if (sched_setaffinity(0, sizeof set, &set)) fail("sched_setaffinity");
  }
  to_peer = &rings[rank], from_peer = &rings[1 - rank];
  if (!is_shm) {
    if (rank == 0) {
      fd = socket(AF_INET, SOCK_STREAM, protocol);
      tune(fd);
      inet_pton(AF_INET, target, &address.sin_addr);
      if (connect(fd, (void *)&address, sizeof address)) fail("connect");
    } else {
      fd = accept(listener, 0, 0);
      if (fd < 0) fail("accept");
      tune(fd);
    }
    if (spins) fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  self = (side){rank, is_shm ? ring_send : socket_send, is_shm ? ring_receive : socket_receive, send_window, receive_window};
  run_cells(&self);
  int status = 0;
  if (rank == 0) waitpid(child, &status, 0);
  return status != 0;
}
