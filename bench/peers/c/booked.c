// Runs one command and books its CPU time against the machine's: booked TIMEOUT_S COMMAND...
// All its descendants belong to it (they are reaped here and killed when it ends or is late), so that what remains of the machine's busy
// time is other people's. One JSON line goes to descriptor 3:
// {"exit":N,"late":B,"wallS":S,"ownS":S,"busyS":S,"stealS":S}
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

// Seconds since boot in which any CPU worked, and in which the host took one away.
static void machine(double *busy, double *steal) {
  FILE *f = fopen("/proc/stat", "r");
  unsigned long long user, nice, system, idle, iowait, irq, softirq, stolen;
  if (f == NULL || fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &iowait, &irq, &softirq, &stolen) != 8)
    exit(2);
  fclose(f);
  double hz = sysconf(_SC_CLK_TCK);
  *busy = (user + nice + system + irq + softirq) / hz;
  *steal = stolen / hz;
}

static double seconds(struct timeval t) { return t.tv_sec + t.tv_usec * 1e-6; }

static double own_s(void) {
  struct rusage r;
  getrusage(RUSAGE_CHILDREN, &r);
  return seconds(r.ru_utime) + seconds(r.ru_stime);
}

// Kills the children of this process; theirs become ours as they die. Returns how many there were.
static int kill_children(void) {
  int found = 0, self = getpid();
  DIR *proc = opendir("/proc");
  for (struct dirent *e; (e = readdir(proc)) != NULL;) {
    int pid = atoi(e->d_name), parent;
    if (pid <= 0) continue;
    char path[64], line[512], *after;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    if (f == NULL) continue;
    if (fgets(line, sizeof line, f) != NULL && (after = strrchr(line, ')')) != NULL && sscanf(after, ") %*c %d", &parent) == 1 && parent == self) {
      kill(pid, SIGKILL);
      found++;
    }
    fclose(f);
  }
  closedir(proc);
  return found;
}

static volatile sig_atomic_t stopped;
static void stop(int signal_number) { stopped = signal_number; }

int main(int argc, char **argv) {
  if (argc < 3) return fprintf(stderr, "usage: booked TIMEOUT_S COMMAND...\n"), 2;
  double timeout = atof(argv[1]), busy0, steal0, busy1, steal1;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  struct sigaction action = {.sa_handler = stop};
  sigaction(SIGTERM, &action, 0);
  sigaction(SIGINT, &action, 0);
  machine(&busy0, &steal0);
  double start = now_s();
  pid_t child = fork();
  if (child == 0) {
    setsid();
    close(3);
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    _exit(127);
  }
  int status = 0, late = 0, ended = 0;
  while (!ended) {
    int one;
    pid_t pid;
    while ((pid = waitpid(-1, &one, WNOHANG)) > 0)
      if (pid == child) status = one, ended = 1;
    if (ended) break;
    if (stopped || now_s() - start > timeout) {
      late = 1;
      kill(-child, SIGKILL);
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
    usleep(5000);
  }
  double wall = now_s() - start;
  for (int i = 0; i < 200 && kill_children() > 0; i++) {
    while (waitpid(-1, 0, WNOHANG) > 0) {
    }
    usleep(1000);
  }
  machine(&busy1, &steal1);
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  dprintf(3, "{\"exit\":%d,\"late\":%s,\"wallS\":%.4f,\"ownS\":%.4f,\"busyS\":%.4f,\"stealS\":%.4f}\n", code, late ? "true" : "false", wall, own_s(), busy1 - busy0, steal1 - steal0);
  return stopped ? 128 + stopped : 0;
}
