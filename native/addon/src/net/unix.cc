// See unix.h.
#include "unix.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

namespace multirail {
namespace {

bool localAddress(const char* name, size_t length, sockaddr_un* out, socklen_t* outLength) {
  memset(out, 0, sizeof *out);
  if (length == 0 || length >= sizeof out->sun_path) return false;
  out->sun_family = AF_UNIX;
  memcpy(out->sun_path, name, length);
  // The length of an abstract name is part of it; a path is closed by a NUL.
  *outLength = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length + (name[0] == '\0' ? 0 : 1));
  return true;
}

int openLocal() { return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

union ControlBuffer {
  char bytes[CMSG_SPACE(sizeof(int) * kDescriptorsMax)];
  cmsghdr aligned;
};

}  // namespace

Outcome unixListen(const char* name, size_t length, int backlog) {
  sockaddr_un address;
  socklen_t addressLength;
  if (!localAddress(name, length, &address, &addressLength)) return {-ENAMETOOLONG, "bind"};
  const int fd = openLocal();
  if (fd < 0) return failed(fd, "socket");
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), addressLength) != 0) return failed(fd, "bind");
  if (listen(fd, backlog) != 0) return failed(fd, "listen");
  return {fd, nullptr};
}

Outcome unixConnect(const char* name, size_t length) {
  sockaddr_un address;
  socklen_t addressLength;
  if (!localAddress(name, length, &address, &addressLength)) return {-ENAMETOOLONG, "connect"};
  const int fd = openLocal();
  if (fd < 0) return failed(fd, "socket");
  // A local connect ends at once: it succeeds, or gives EAGAIN when the listener's backlog is full.
  int answer;
  do answer = connect(fd, reinterpret_cast<sockaddr*>(&address), addressLength);
  while (answer != 0 && errno == EINTR);
  return answer != 0 ? failed(fd, "connect") : Outcome{fd, nullptr};
}

Outcome unixPeer(int fd, int* pid, uint32_t* uid) {
  ucred peer;
  socklen_t length = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return {-errno, "getsockopt"};
  *pid = peer.pid;
  *uid = peer.uid;
  return {0, nullptr};
}

ssize_t sendDescriptors(int fd, const void* data, size_t length, const int* descriptors, size_t count) {
  if (length == 0 || count > kDescriptorsMax) return -EINVAL;
  iovec vector = {const_cast<void*>(data), length};
  ControlBuffer control;
  memset(&control, 0, sizeof control);
  msghdr message;
  memset(&message, 0, sizeof message);
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  if (count > 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * count);
    memcpy(CMSG_DATA(header), descriptors, sizeof(int) * count);
  }
  ssize_t taken;
  do taken = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (taken < 0 && errno == EINTR);
  return taken < 0 ? -errno : taken;
}

ssize_t receiveDescriptors(int fd, void* data, size_t length, int descriptors[kDescriptorsMax], size_t* count) {
  *count = 0;
  iovec vector = {data, length};
  ControlBuffer control;
  memset(&control, 0, sizeof control);
  msghdr message;
  memset(&message, 0, sizeof message);
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  ssize_t got;
  do got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got < 0) return -errno;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t came = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < came; i++) {
      int descriptor;
      memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof descriptor);
      if (*count < kDescriptorsMax) descriptors[(*count)++] = descriptor;
      else close(descriptor);
    }
  }
  // The kernel drops what did not fit; the rest is useless without it.
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    for (size_t i = 0; i < *count; i++) close(descriptors[i]);
    *count = 0;
    return -EMSGSIZE;
  }
  return got;
}

}  // namespace multirail
