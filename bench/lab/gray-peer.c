// The traffic of the campaign of bad links without a library: as bench/lab/gray-rank-traffic.ts, over one TCP or Multipath TCP connection for
// each stream. Speaks the words of bench/lab/gray-protocol.ts to the campaign, and measures gaps as it says there.
//   gray-peer TRAFFIC tcp|mptcp RAIL PORT CONTROL NAMESPACE...   one process for each namespace: rank r, 10.77.RAIL.r+1 in the lab, listens
//                                                                at PORT + r
//   gray-peer probe                                         exits 0 if this kernel makes Multipath TCP sockets
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#define RANKS_MAX 4
#define STREAMS_MAX 2
#define RAILS_MAX 8
#define GAPS_MAX 4096
#define GAP_MIN_MS 1.0
#define DOUBLES 8192
#define SOCKET_BUFFER_BYTES (4 << 20)
#define CONNECT_ATTEMPTS 500
#define END 0xffffffffu

// Time of sending, number, length: the head of every message.
typedef struct {
  double sent_at;
  uint32_t number, bytes;
} head;

typedef struct {
  int bytes, window, per_second; // per_second 0: as fast as the window lets it
  int fd, number;
  uint64_t sent, received, acknowledged;
} stream;

static int rank, size, protocol, rail, port;
static stream streams[STREAMS_MAX];
static int stream_count;
static FILE *control;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_running, is_stopping;
static char errors[2048];
// Deliveries, under the lock.
static uint64_t messages, delivered;
static double last_of_stream[STREAMS_MAX];
static struct {
  double from, to;
  int stream;
} gaps[GAPS_MAX];
static int gap_count;

static void fail(const char *what) {
  fprintf(stderr, "gray-peer, rank %d: %s: %s\n", rank, what, strerror(errno));
  exit(1);
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void sleep_ms(double ms) {
  struct timespec t = {ms / 1000, (long)(ms * 1e6) % 1000000000};
  nanosleep(&t, 0);
}

static void complain(const char *text) {
  pthread_mutex_lock(&lock);
  size_t length = strlen(errors);
  if (length + strlen(text) + 8 < sizeof errors) sprintf(errors + length, "%s\"%s\"", length > 0 ? "," : "", text);
  pthread_mutex_unlock(&lock);
}

static double latest(double a, double b) { return a > b ? a : b; }

static void note(double sent_at, size_t bytes, int number) {
  double at = now_ms();
  pthread_mutex_lock(&lock);
  double from = latest(last_of_stream[number], sent_at);
  if (at - from >= GAP_MIN_MS && gap_count < GAPS_MAX) {
    gaps[gap_count].from = from, gaps[gap_count].to = at, gaps[gap_count].stream = number;
    gap_count++;
  }
  last_of_stream[number] = at, messages++, delivered += bytes;
  pthread_mutex_unlock(&lock);
}

// ---- sockets

static void enter(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "/run/netns/%s", name);
  int netns = open(path, O_RDONLY | O_CLOEXEC);
  if (netns < 0 || setns(netns, CLONE_NEWNET)) fail(path);
  close(netns);
}

// The receive buffer is left to the kernel, which grows it: of a fixed size, be it as large, two paths stand still for a second at a time.
static void tune(int fd) {
  int one = 1, bytes = SOCKET_BUFFER_BYTES;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

static int listen_here(void) {
  // Further paths join at other addresses: all are listened on.
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port + rank), .sin_addr = {htonl(INADDR_ANY)}};
  int fd = socket(AF_INET, SOCK_STREAM, protocol);
  if (fd < 0) fail("socket");
  tune(fd);
  if (bind(fd, (void *)&address, sizeof address) || listen(fd, 8)) fail("listen");
  return fd;
}

static void put(int fd, const void *data, size_t n) {
  for (const char *p = data; n > 0;) {
    ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
    if (sent <= 0) fail("send");
    p += sent, n -= sent;
  }
}

static void get(int fd, void *data, size_t n) {
  for (char *p = data; n > 0;) {
    ssize_t got = recv(fd, p, n, 0);
    if (got <= 0) fail("recv");
    p += got, n -= got;
  }
}

// To a lower rank; it says who calls, and for which stream.
static int call(int peer, int number) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port + peer)};
  char text[32];
  snprintf(text, sizeof text, "10.77.%d.%d", rail, peer + 1);
  inet_pton(AF_INET, text, &address.sin_addr);
  for (int attempt = 0; attempt < CONNECT_ATTEMPTS; attempt++) {
    int fd = socket(AF_INET, SOCK_STREAM, protocol);
    if (fd < 0) fail("socket");
    tune(fd);
    if (!connect(fd, (void *)&address, sizeof address)) {
      char who[2] = {rank, number};
      put(fd, who, 2);
      return fd;
    }
    close(fd);
    sleep_ms(20);
  }
  fail("connect");
  return -1;
}

// ---- the campaign's words

static void *hear(void *nothing) {
  char line[256];
  int fd = fileno(control);
  FILE *words = fdopen(dup(fd), "r");
  while (fgets(line, sizeof line, words) != NULL) {
    pthread_mutex_lock(&lock);
    if (strstr(line, "\"go\"")) is_running = 1;
    if (strstr(line, "\"pause\"")) is_running = 0;
    if (strstr(line, "\"stop\"")) is_stopping = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
  }
  exit(1); // The campaign is gone: nobody wants the rest.
  return nothing;
}

static int is_sending(void) {
  pthread_mutex_lock(&lock);
  int answer = is_running && !is_stopping;
  pthread_mutex_unlock(&lock);
  return answer;
}

static int drained;

// Everything of `parts` parts has left: says so when all have, and waits for the next word. 0 = it is time to end.
static int take_turn(int parts, int is_first) {
  pthread_mutex_lock(&lock);
  if (!is_first && !is_stopping && ++drained == parts) {
    drained = 0;
    fprintf(control, "{\"type\":\"paused\",\"at\":%.3f}\n", now_ms());
    fflush(control);
  }
  while (!is_running && !is_stopping) pthread_cond_wait(&changed, &lock);
  int goes_on = !is_stopping;
  pthread_mutex_unlock(&lock);
  return goes_on;
}

// Packets that came over each rail, of /proc/self/net/dev.
static void report(void) {
  uint64_t packets[RAILS_MAX] = {0};
  int rails = 0;
  char line[512];
  FILE *dev = fopen("/proc/thread-self/net/dev", "r");
  while (dev != NULL && fgets(line, sizeof line, dev) != NULL) {
    unsigned index;
    unsigned long long bytes, count;
    if (sscanf(line, " mr%u: %llu %llu", &index, &bytes, &count) != 3 || index >= RAILS_MAX) continue;
    packets[index] = count;
    if ((int)index >= rails) rails = index + 1;
  }
  if (dev != NULL) fclose(dev);
  pthread_mutex_lock(&lock);
  double last_at = last_of_stream[0];
  for (int i = 1; i < stream_count; i++)
    if (last_of_stream[i] < last_at) last_at = last_of_stream[i];
  fprintf(control, "{\"type\":\"report\",\"at\":%.3f,\"lastAt\":%.3f,\"messages\":%llu,", now_ms(), last_at, (unsigned long long)messages);
  fprintf(control, "\"bytes\":{\"delivered\":%llu,\"sentAgain\":0,\"beyondOnce\":0},\"gaps\":[", (unsigned long long)delivered);
  for (int i = 0; i < gap_count; i++)
    fprintf(control, "%s[%.3f,%.3f,%d]", i > 0 ? "," : "", gaps[i].from, gaps[i].to, gaps[i].stream);
  gap_count = 0;
  fprintf(control, "],\"rails\":[");
  for (int i = 0; i < rails; i++)
    fprintf(control, "%s{\"rail\":%d,\"up\":1,\"of\":1,\"framesReceived\":%llu}", i > 0 ? "," : "", i, (unsigned long long)packets[i]);
  fprintf(control, "]}\n");
  fflush(control);
  pthread_mutex_unlock(&lock);
}

static void *report_always(void *nothing) {
  for (;;) {
    report();
    sleep_ms(size > 2 ? 20 : 10);
  }
  return nothing;
}

// ---- streams from rank 0 to rank 1: each message is acknowledged by a byte, so that a window of them is under way

static void *hear_acks(void *argument) {
  stream *s = argument;
  char bytes[256];
  for (;;) {
    ssize_t got = recv(s->fd, bytes, sizeof bytes, 0);
    if (got <= 0) return 0; // The receiver has left.
    pthread_mutex_lock(&lock);
    s->acknowledged += got;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
  }
}

static void wait_for_room(stream *s, uint64_t outstanding_max) {
  pthread_mutex_lock(&lock);
  while (s->sent - s->acknowledged > outstanding_max) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

static void *send_stream(void *argument) {
  stream *s = argument;
  char *buffer = calloc(1, s->bytes);
  pthread_t acks;
  pthread_create(&acks, 0, hear_acks, s);
  for (int goes_on = take_turn(stream_count, 1); goes_on; goes_on = take_turn(stream_count, 0)) {
    double from = now_ms();
    uint64_t first = s->sent;
    while (is_sending()) {
      if (s->per_second > 0) {
        uint64_t due = first + (now_ms() - from) * s->per_second / 1000;
        if (due > s->sent + s->window) from = now_ms(), first = s->sent;
        if (s->sent >= due) {
          sleep_ms(0.5);
          continue;
        }
      }
      wait_for_room(s, s->window - 1);
      *(head *)buffer = (head){now_ms(), s->sent, s->bytes};
      put(s->fd, buffer, s->bytes);
      s->sent++;
    }
    wait_for_room(s, 0);
  }
  head end = {0, END, s->sent};
  put(s->fd, &end, sizeof end);
  pthread_join(acks, 0);
  return 0;
}

static void *receive_stream(void *argument) {
  stream *s = argument;
  char *buffer = malloc(s->bytes), text[128];
  head *h = (head *)buffer;
  for (;; s->received++) {
    get(s->fd, buffer, sizeof *h);
    if (h->number == END) break;
    get(s->fd, buffer + sizeof *h, s->bytes - sizeof *h);
    note(h->sent_at, s->bytes, s->number);
    put(s->fd, "a", 1);
    if (h->number != (uint32_t)s->received || h->bytes != (uint32_t)s->bytes) {
      snprintf(text, sizeof text, "message %u where %llu was due", h->number, (unsigned long long)s->received);
      complain(text);
    }
  }
  if (h->bytes != (uint32_t)s->received) complain("the number of messages is wrong");
  shutdown(s->fd, SHUT_RDWR);
  return 0;
}

static void run_streams(void) {
  pthread_t threads[STREAMS_MAX];
  for (int i = 0; i < stream_count; i++) pthread_create(&threads[i], 0, rank == 0 ? send_stream : receive_stream, &streams[i]);
  for (int i = 0; i < stream_count; i++) pthread_join(threads[i], 0);
}

// ---- one ball

static void run_pingpong(void) {
  stream *s = &streams[0];
  char buffer[64] = {0};
  head *h = (head *)buffer;
  if (rank == 1) {
    for (;; s->received++) {
      get(s->fd, buffer, sizeof buffer);
      if (h->number == END) break;
      note(h->sent_at, sizeof buffer, 0);
      if (h->number != (uint32_t)s->received) complain("a ping is out of order");
      h->sent_at = now_ms();
      put(s->fd, buffer, sizeof buffer);
    }
    s->sent = s->received;
    return;
  }
  for (int goes_on = take_turn(1, 1); goes_on; goes_on = take_turn(1, 0)) {
    for (; is_sending(); s->sent++) {
      *h = (head){now_ms(), s->sent, sizeof buffer};
      put(s->fd, buffer, sizeof buffer);
      get(s->fd, buffer, sizeof buffer);
      note(h->sent_at, sizeof buffer, 0);
      if (h->number != (uint32_t)s->sent) complain("a pong is out of order");
    }
  }
  *h = (head){0, END, s->sent};
  put(s->fd, buffer, sizeof buffer);
  s->received = s->sent;
}

// ---- all ranks: recursive doubling

static int fd_to[RANKS_MAX];

static void run_allreduce(void) {
  static double own[DOUBLES], other[DOUBLES];
  uint64_t count = 0;
  int is_first = 1;
  for (int is_over = 0; !is_over; count++) {
    if (rank == 0 && !is_sending()) take_turn(1, is_first);
    is_first = 0;
    for (int i = 2; i < DOUBLES; i++) own[i] = ((count + i * 7) & 0xffff) + rank;
    pthread_mutex_lock(&lock);
    own[0] = rank == 0 && is_stopping;
    pthread_mutex_unlock(&lock);
    own[1] = rank == 0 ? now_ms() : 0;
    for (int mask = 1; mask < size; mask *= 2) {
      // Send buffers take a whole vector, so both may send first.
      put(fd_to[rank ^ mask], own, sizeof own);
      get(fd_to[rank ^ mask], other, sizeof other);
      for (int i = 0; i < DOUBLES; i++) own[i] += other[i];
    }
    is_over = own[0] != 0;
    note(own[1], sizeof own, 0);
    for (int i = 2; i < DOUBLES; i++)
      if (own[i] != size * (double)((count + i * 7) & 0xffff) + size * (size - 1) / 2) {
        complain("a sum is wrong");
        break;
      }
  }
  streams[0].sent = streams[0].received = count;
}

// ---- start

static void connect_all(int listener, int is_allreduce) {
  int calls = 0;
  if (is_allreduce) {
    for (int mask = 1; mask < size; mask *= 2)
      if ((rank ^ mask) < rank) fd_to[rank ^ mask] = call(rank ^ mask, 0);
      else calls++;
  } else if (rank == 1) {
    for (int i = 0; i < stream_count; i++) streams[i].fd = call(0, i);
  } else calls = stream_count;
  for (; calls > 0; calls--) {
    char who[2];
    int fd = accept(listener, 0, 0);
    if (fd < 0) fail("accept");
    tune(fd);
    get(fd, who, 2);
    if (is_allreduce) fd_to[(int)who[0]] = fd;
    else streams[(int)who[1]].fd = fd;
  }
}

static void run_rank(const char *traffic, const char *path, const char *namespace) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A local socket is not of a network namespace.
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(fd, (void *)&address, sizeof address)) fail(path);
  control = fdopen(fd, "w");
  fprintf(control, "{\"type\":\"hello\",\"rank\":%d,\"pid\":%d}\n", rank, getpid());
  enter(namespace);
  int is_allreduce = !strcmp(traffic, "allreduce");
  connect_all(listen_here(), is_allreduce);
  for (int i = 0; i < stream_count; i++) last_of_stream[i] = now_ms();
  report();
  fprintf(control, "{\"type\":\"ready\",\"at\":%.3f}\n", now_ms());
  fflush(control);
  pthread_t thread;
  pthread_create(&thread, 0, hear, 0);
  pthread_create(&thread, 0, report_always, 0);
  if (is_allreduce) run_allreduce();
  else if (!strcmp(traffic, "pingpong")) run_pingpong();
  else run_streams();
  report();
  pthread_mutex_lock(&lock);
  fprintf(control, "{\"type\":\"done\",\"sent\":[");
  for (int i = 0; i < stream_count; i++) fprintf(control, "%s%llu", i > 0 ? "," : "", (unsigned long long)streams[i].sent);
  fprintf(control, "],\"received\":[");
  for (int i = 0; i < stream_count; i++) fprintf(control, "%s%llu", i > 0 ? "," : "", (unsigned long long)streams[i].received);
  fprintf(control, "],\"errors\":[%s],\"counters\":{}}\n", errors);
  fflush(control);
  _exit(0);
}

int main(int argc, char **argv) {
  if (argc == 2 && !strcmp(argv[1], "probe")) return socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP) < 0;
  if (argc < 8 || argc - 6 > RANKS_MAX) return fprintf(stderr, "usage: gray-peer TRAFFIC tcp|mptcp RAIL PORT CONTROL NAMESPACE NAMESPACE...\n"), 2;
  const char *traffic = argv[1];
  protocol = !strcmp(argv[2], "mptcp") ? IPPROTO_MPTCP : IPPROTO_TCP;
  rail = atoi(argv[3]);
  port = atoi(argv[4]);
  size = argc - 6;
  signal(SIGUSR2, SIG_IGN);
  stream_count = !strcmp(traffic, "mixed") ? 2 : 1;
  streams[0] = (stream){.bytes = 1 << 20, .window = stream_count == 2 ? 8 : 16};
  streams[1] = (stream){.bytes = 64, .window = 1024, .per_second = 500, .number = 1};
  if (!strcmp(traffic, "small")) streams[0] = (stream){.bytes = 64, .window = 1024, .per_second = 2000};
  for (rank = 0; rank < size; rank++) {
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) run_rank(traffic, argv[5], argv[6 + rank]);
  }
  for (int i = 0; i < size; i++) {
    int status;
    if (wait(&status) < 0) fail("wait");
    // The others would wait for it for ever; they go with this process.
    if (status != 0) return 1;
  }
  return 0;
}
