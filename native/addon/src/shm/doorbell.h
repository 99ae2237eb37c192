// Wake-ups between processes (eventfd): signals add up until they are taken. No Node headers.
#pragma once

namespace multirail {

/// A descriptor or a negative errno.
int doorbellOpen();
/// 0 or a negative errno. A bell that rings already stays so.
int doorbellSignal(int fd);
/// 1 when there were signals, which are taken; 0 when not; a negative errno.
int doorbellClear(int fd);

}  // namespace multirail
