// See tcp-info.h.
#include "tcp-info.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace multirail {
namespace {

/// The kernel's struct tcp_info, which only ever grows at its end; libraries' headers stop at different fields of it.
struct KernelTcpInfo {
  uint8_t state, caState, retransmits, probes, backoff, options, windowScales, flags;
  uint32_t rto, ato, sndMss, rcvMss;
  uint32_t unacked, sacked, lost, retrans, fackets;
  uint32_t lastDataSent, lastAckSent, lastDataRecv, lastAckRecv;
  uint32_t pmtu, rcvSsthresh, rtt, rttvar, sndSsthresh, sndCwnd, advmss, reordering, rcvRtt, rcvSpace, totalRetrans;
  uint64_t pacingRate, maxPacingRate, bytesAcked, bytesReceived;
  uint32_t segsOut, segsIn, notsentBytes, minRtt, dataSegsIn, dataSegsOut;
  uint64_t deliveryRate, busyTime, rwndLimited, sndbufLimited;
  uint32_t delivered, deliveredCe;
  uint64_t bytesSent, bytesRetrans;
  uint32_t dsackDups, reordSeen, rcvOoopack, sndWnd;
};
static_assert(offsetof(KernelTcpInfo, rtt) == 68, "layout of struct tcp_info");
static_assert(offsetof(KernelTcpInfo, bytesAcked) == 120, "layout of struct tcp_info");
static_assert(offsetof(KernelTcpInfo, sndWnd) == 228, "layout of struct tcp_info");

}  // namespace

int tcpInfo(int fd, double out[kTcpInfoLength]) {
  KernelTcpInfo info;
  memset(&info, 0, sizeof info);
  socklen_t length = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return -errno;
#define FIELD(name) (offsetof(KernelTcpInfo, name) + sizeof info.name <= length ? static_cast<double>(info.name) : -1)
  out[0] = FIELD(state);
  out[1] = FIELD(unacked);
  out[2] = FIELD(notsentBytes);
  out[3] = FIELD(bytesAcked);
  out[4] = FIELD(bytesReceived);
  out[5] = FIELD(lastAckRecv);
  out[6] = FIELD(lastDataRecv);
  out[7] = FIELD(lastDataSent);
  out[8] = FIELD(rtt);
  out[9] = FIELD(rto);
  out[10] = FIELD(sndWnd);
  out[11] = FIELD(retransmits);
  out[13] = FIELD(totalRetrans);
  out[14] = FIELD(minRtt);
  out[15] = FIELD(dsackDups);
#undef FIELD
  int queued = 0;
  out[12] = ioctl(fd, SIOCOUTQ, &queued) == 0 ? queued : -1;
  return 0;
}

}  // namespace multirail
