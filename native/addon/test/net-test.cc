// Sockets, descriptors that travel, addresses as text, and messages of the kernel that are cut or full of chance.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../../test/check.h"
#include "../src/net/netlink.h"
#include "../src/net/tcp-info.h"
#include "../src/net/unix.h"

using namespace multirail;

namespace {

int openDescriptors() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) count++;
  closedir(folder);
  return count;
}

void addresses() {
  Address address;
  uint16_t port = 0;
  char text[kAddressTextMax];
  CHECK(parseAddress("127.0.0.1", 80, &address) && formatAddress(address, text, &port) == 9 && strcmp(text, "127.0.0.1") == 0 &&
        port == 80);
  CHECK(parseAddress("::1", 81, &address) && formatAddress(address, text, &port) == 3 && strcmp(text, "::1") == 0 && port == 81);
  CHECK(parseAddress("fe80::1%lo", 1, &address));
  formatAddress(address, text, &port);
  CHECK(strcmp(text, "fe80::1%lo") == 0);
  CHECK(parseAddress("fe80::1%1", 1, &address));
  const char* const wrong[] = {"", "localhost", "1.2.3", "fe80::1%", "fe80::1%nosuch0", "fe80::1%4x", "::1::", "%lo", "1.2.3.4%lo"};
  for (const char* text : wrong) CHECK(!parseAddress(text, 1, &address));
  char longText[300];
  memset(longText, '1', sizeof longText - 1);
  longText[sizeof longText - 1] = '\0';
  CHECK(!parseAddress(longText, 1, &address));
}

void streams() {
  Address address;
  SocketOptions options;
  memset(&options, 0, sizeof options);
  CHECK(parseAddress("127.0.0.1", 0, &address));
  const Outcome listener = tcpListen(address, 8, options);
  CHECK(listener.value >= 0);
  CHECK(acceptConnection(listener.value) == -EAGAIN);
  CHECK(nameOf(listener.value, false, &address).value == 0);
  Address local;
  CHECK(parseAddress("127.0.0.2", 0, &local));
  const Outcome dialed = tcpConnect(address, &local, options);
  CHECK(dialed.value >= 0);
  pollfd wanted = {listener.value, POLLIN, 0};
  CHECK(poll(&wanted, 1, 5000) == 1);
  const int accepted = acceptConnection(listener.value);
  CHECK(accepted >= 0 && connectResult(dialed.value) == 0);
  CHECK((fcntl(accepted, F_GETFL) & O_NONBLOCK) != 0 && (fcntl(accepted, F_GETFD) & FD_CLOEXEC) != 0);
  char text[kAddressTextMax];
  uint16_t port;
  CHECK(nameOf(accepted, true, &local).value == 0 && formatAddress(local, text, &port) > 0 && strcmp(text, "127.0.0.2") == 0);

  char hello[] = "hello";
  char world[] = ", world";
  iovec out[2] = {{hello, 5}, {world, 7}};
  CHECK(sendVector(dialed.value, out, 2) == 12);
  wanted.fd = accepted;
  CHECK(poll(&wanted, 1, 5000) == 1);
  char first[3];
  char rest[20];
  iovec in[2] = {{first, 3}, {rest, sizeof rest}};
  CHECK(receiveVector(accepted, in, 2) == 12);
  CHECK(memcmp(first, "hel", 3) == 0 && memcmp(rest, "lo, world", 9) == 0);
  CHECK(receiveBytes(accepted, first, 3) == -EAGAIN);
  double info[kTcpInfoLength];
  CHECK(tcpInfo(dialed.value, info) == 0 && info[0] == 1 && info[12] == 0 && info[3] >= 12);
  CHECK(info[13] == 0 && info[14] >= 0 && info[15] <= 0);
  CHECK(tcpInfo(-1, info) == -EBADF);
  CHECK(closeReset(accepted) == 0);
  wanted.fd = dialed.value;
  CHECK(poll(&wanted, 1, 5000) == 1);
  CHECK(receiveBytes(dialed.value, first, 3) == -ECONNRESET);
  CHECK(sendBytes(dialed.value, hello, 5) == -EPIPE);
  CHECK(closeDescriptor(dialed.value) == 0 && closeDescriptor(dialed.value) == -EBADF);
  closeDescriptor(listener.value);
}

/// Sends `count` descriptors past our own limit, as a hostile peer would.
void sendMany(int fd, int descriptor, int count) {
  char byte = 'x';
  iovec vector = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 64)] = {};
  msghdr message;
  memset(&message, 0, sizeof message);
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(sizeof(int) * static_cast<size_t>(count));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * static_cast<size_t>(count));
  for (int i = 0; i < count; i++) memcpy(CMSG_DATA(header) + static_cast<size_t>(i) * sizeof(int), &descriptor, sizeof descriptor);
  CHECK(sendmsg(fd, &message, 0) == 1);
}

void travellingDescriptors() {
  char name[64];
  const int length = snprintf(name, sizeof name, "%cmultirail-test-%d", '\0', getpid());
  const Outcome listener = unixListen(name, static_cast<size_t>(length), 8);
  CHECK(listener.value >= 0);
  const Outcome dialed = unixConnect(name, static_cast<size_t>(length));
  CHECK(dialed.value >= 0);
  const int accepted = acceptConnection(listener.value);
  CHECK(accepted >= 0);
  int pid = 0;
  uint32_t uid = 0;
  CHECK(unixPeer(accepted, &pid, &uid).value == 0 && pid == getpid() && uid == getuid());

  int pipes[2];
  CHECK(pipe(pipes) == 0);
  const int before = openDescriptors();
  char bytes[8] = "abc";
  const int both[2] = {pipes[0], pipes[1]};
  CHECK(sendDescriptors(dialed.value, bytes, 3, both, 2) == 3);
  int came[kDescriptorsMax];
  size_t count = 99;
  CHECK(receiveDescriptors(accepted, bytes, sizeof bytes, came, &count) == 3 && count == 2);
  CHECK((fcntl(came[0], F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(write(came[1], "z", 1) == 1 && read(came[0], bytes, 1) == 1 && bytes[0] == 'z');
  close(came[0]);
  close(came[1]);
  CHECK(receiveDescriptors(accepted, bytes, sizeof bytes, came, &count) == -EAGAIN && count == 0);
  CHECK(sendDescriptors(dialed.value, bytes, 0, both, 2) == -EINVAL);
  CHECK(sendDescriptors(dialed.value, bytes, 1, both, kDescriptorsMax + 1) == -EINVAL);
  const int wrong = -1;
  CHECK(sendDescriptors(dialed.value, bytes, 1, &wrong, 1) == -EBADF);

  for (int many = 1; many <= 40; many++) {
    sendMany(dialed.value, pipes[0], many);
    const ssize_t got = receiveDescriptors(accepted, bytes, sizeof bytes, came, &count);
    CHECK(many <= static_cast<int>(kDescriptorsMax) ? got == 1 && count == static_cast<size_t>(many) : got == -EMSGSIZE && count == 0);
    for (size_t i = 0; i < count; i++) close(came[i]);
  }
  CHECK(openDescriptors() == before);
  // A plain read throws the descriptors away, and nothing stays open.
  sendMany(dialed.value, pipes[0], 3);
  CHECK(receiveBytes(accepted, bytes, sizeof bytes) == 1);
  CHECK(openDescriptors() == before);
  close(pipes[0]);
  close(pipes[1]);
  CHECK(unixConnect(name, 0).value == -ENAMETOOLONG);
  char longName[200] = {};
  CHECK(unixConnect(longName, sizeof longName).value == -ENAMETOOLONG);
  CHECK(unixConnect("\0multirail-nobody", 17).value == -ECONNREFUSED);
  close(dialed.value);
  close(accepted);
  close(listener.value);
}

struct Counted {
  int links;
  int addresses;
  bool loopback;
};

bool countEvent(void* context, const NetlinkEvent& event) {
  auto* counted = static_cast<Counted*>(context);
  CHECK(strnlen(event.text, sizeof event.text) < sizeof event.text);
  if (event.kind == NetlinkKind::kLink) counted->links++;
  if (event.kind == NetlinkKind::kAddress) counted->addresses++;
  if (event.kind == NetlinkKind::kLink && strcmp(event.text, "lo") == 0) counted->loopback = true;
  return true;
}

size_t linkMessage(uint8_t* at, uint16_t type, const char* name) {
  nlmsghdr header;
  memset(&header, 0, sizeof header);
  ifinfomsg body;
  memset(&body, 0, sizeof body);
  body.ifi_index = 7;
  body.ifi_flags = IFF_UP | IFF_RUNNING | 0x10000;
  rtattr attribute;
  attribute.rta_type = IFLA_IFNAME;
  attribute.rta_len = static_cast<unsigned short>(RTA_LENGTH(strlen(name) + 1));
  header.nlmsg_type = type;
  header.nlmsg_len = static_cast<uint32_t>(NLMSG_LENGTH(sizeof body) + RTA_ALIGN(attribute.rta_len));
  memcpy(at, &header, sizeof header);
  memcpy(at + NLMSG_LENGTH(0), &body, sizeof body);
  memcpy(at + NLMSG_LENGTH(sizeof body), &attribute, sizeof attribute);
  memcpy(at + NLMSG_LENGTH(sizeof body) + RTA_LENGTH(0), name, strlen(name) + 1);
  return NLMSG_ALIGN(header.nlmsg_len);
}

void kernelMessages() {
  Counted counted = {};
  CHECK(netlinkLinks(countEvent, &counted).value == 0 && counted.links >= 1 && counted.loopback);
  const Outcome events = netlinkOpen();
  CHECK(events.value >= 0 && netlinkRead(events.value, countEvent, &counted) == 0);
  close(events.value);
  CHECK(netlinkRead(-1, countEvent, &counted) == -EBADF);

  alignas(8) uint8_t whole[256] = {};
  size_t length = linkMessage(whole, RTM_NEWLINK, "eth7");
  length += linkMessage(whole + length, RTM_DELLINK, "lo");
  counted = {};
  CHECK(netlinkParse(whole, length, countEvent, &counted) == 0 && counted.links == 2 && counted.loopback);
  // An attribute that claims more than there is, in a block of the exact size without a NUL behind it.
  const size_t exact = NLMSG_LENGTH(sizeof(ifinfomsg)) + RTA_LENGTH(4);
  for (unsigned lie = 0; lie <= 64; lie++) {
    auto* block = static_cast<uint8_t*>(malloc(exact));
    linkMessage(whole + 128, RTM_NEWLINK, "eth");
    memcpy(block, whole + 128, exact);
    memset(block + exact - 4, 'x', 4);
    const auto claimed = static_cast<unsigned short>(lie);
    memcpy(block + NLMSG_LENGTH(sizeof(ifinfomsg)), &claimed, sizeof claimed);
    counted = {};
    CHECK(netlinkParse(block, exact, countEvent, &counted) == 0 && counted.links == 1);
    free(block);
  }
  check::Random random{7};
  for (int round = 0; round < 20000; round++) {
    const size_t bytes = random.below(static_cast<unsigned>(length) + 1);
    auto* part = static_cast<uint8_t*>(malloc(bytes == 0 ? 1 : bytes));
    memcpy(part, whole, bytes);
    for (unsigned i = random.below(6); i > 0 && bytes > 0; i--)
      part[random.below(static_cast<unsigned>(bytes))] = static_cast<uint8_t>(random.next());
    counted = {};
    netlinkParse(part, bytes, countEvent, &counted);
    CHECK(counted.links + counted.addresses <= static_cast<int>(bytes / NLMSG_LENGTH(0)));
    free(part);
  }
}

}  // namespace

int main() {
  addresses();
  streams();
  travellingDescriptors();
  kernelMessages();
  return check::finish("net");
}
