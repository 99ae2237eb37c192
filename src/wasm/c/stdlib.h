/* <stdlib.h> of the C library of WASI, and what it leaves out because WASI has no processes: programs for clusters have it in places that
 * they hardly ever come to, and would not compile. */
#pragma GCC system_header
#include_next <stdlib.h>

#ifndef MULTIRAIL_STDLIB_H
#define MULTIRAIL_STDLIB_H
#ifdef __cplusplus
extern "C" {
#endif

/* There is no shell: 0 for NULL, which asks for one, and else -1 with ENOSYS. */
int system(const char *command);

#ifdef __cplusplus
}
#endif
#endif
