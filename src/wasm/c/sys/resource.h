/* <sys/resource.h>: that of the C library of WASI has times alone. The fields are those of Linux; what a program of WebAssembly cannot know is 0. */
#pragma GCC system_header
#ifndef MULTIRAIL_SYS_RESOURCE_H
#define MULTIRAIL_SYS_RESOURCE_H
#include <sys/time.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RUSAGE_SELF 0
#define RUSAGE_CHILDREN (-1)

struct rusage {
  /* Processor time of the process, which is not told apart into that of the program and that of the system: all of it is here. */
  struct timeval ru_utime;
  struct timeval ru_stime;
  /* Kilobytes of the program's memory. */
  long ru_maxrss;
  long ru_ixrss;
  long ru_idrss;
  long ru_isrss;
  long ru_minflt;
  long ru_majflt;
  long ru_nswap;
  long ru_inblock;
  long ru_oublock;
  long ru_msgsnd;
  long ru_msgrcv;
  long ru_nsignals;
  long ru_nvcsw;
  long ru_nivcsw;
};

int getrusage(int who, struct rusage *usage);

#ifdef __cplusplus
}
#endif
#endif
