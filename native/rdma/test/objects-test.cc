// Table and words without a device: the library is a handful of functions that count what they are asked for. Built with sanitizers by
// native/scripts/test.mjs.
#include <errno.h>

#include <utility>

#include "../../test/check.h"
#include "../src/objects.h"
#include "../src/work.h"

using namespace noderdma;

namespace {

/// What was destroyed, one letter each, in order.
char destroyed[256];
size_t destroyedCount = 0;
int refuseWith = 0;

void note(char what) { destroyed[destroyedCount++ % sizeof destroyed] = what; }
int closeDevice(ibv_context*) {
  note('c');
  return 0;
}
int deallocPd(ibv_pd*) {
  note('p');
  return refuseWith;
}
int deregMr(ibv_mr* mr) {
  note('m');
  free(mr);
  return 0;
}
int destroyChannel(ibv_comp_channel*) {
  note('h');
  return 0;
}
int destroyCq(ibv_cq*) {
  note('q');
  return 0;
}
int destroyQp(ibv_qp*) {
  note('u');
  return 0;
}

VerbsLib fake() {
  VerbsLib lib;
  memset(&lib, 0, sizeof lib);
  lib.close_device = closeDevice;
  lib.dealloc_pd = deallocPd;
  lib.dereg_mr = deregMr;
  lib.destroy_comp_channel = destroyChannel;
  lib.destroy_cq = destroyCq;
  lib.destroy_qp = destroyQp;
  return lib;
}

int disowned = 0;
void disown(void*, void*) { disowned++; }

struct OwnTable : Table {
  explicit OwnTable(const VerbsLib* lib) : Table() { open(lib, disown, nullptr); }
  ~OwnTable() { end(); }
};

char something[8];

Object* make(Table& table, Kind kind, Object* a = nullptr, Object* b = nullptr, Object* c = nullptr, void* owner = nullptr) {
  Object* parents[3] = {a, b, c};
  Object* object = table.begin(kind, parents, 3);
  table.made(object, something, owner);
  return object;
}

Object* makeRegion(Table& table, Object* pd, void* memory, size_t bytes, uint32_t lkey) {
  Object* object = table.begin(Kind::mr, &pd, 1);
  auto* mr = static_cast<ibv_mr*>(calloc(1, sizeof(ibv_mr)));
  mr->addr = memory;
  mr->length = bytes;
  mr->lkey = lkey;
  table.made(object, mr, memory);
  return object;
}

bool wasDestroyed(const char* expected) {
  const bool same = strlen(expected) == destroyedCount && memcmp(expected, destroyed, destroyedCount) == 0;
  if (!same) printf("destroyed %.*s, expected %s\n", static_cast<int>(destroyedCount), destroyed, expected);
  destroyedCount = 0;
  return same;
}

void anyOrder() {
  const VerbsLib lib = fake();
  OwnTable table(&lib);
  Object* context = make(table, Kind::context);
  Object* pd = make(table, Kind::pd, context);
  Object* channel = make(table, Kind::channel, context);
  Object* cq = make(table, Kind::cq, context, channel);
  Object* qp = make(table, Kind::qp, pd, cq, cq);
  const int32_t ids[] = {context->id, pd->id, channel->id, cq->id};
  for (const int32_t id : ids) CHECK(table.close(id) == 0);
  CHECK(wasDestroyed(""));
  CHECK(table.find(pd->id, Kind::pd) == nullptr);
  CHECK(table.live(Kind::pd) == 1);
  CHECK(table.close(qp->id) == 0);
  // The pair, then what only it needed, then what those needed.
  CHECK(destroyedCount == 5);
  CHECK(destroyed[0] == 'u' && destroyed[4] == 'c');
  destroyedCount = 0;
  for (int kind = 0; kind < kKinds; kind++) CHECK(table.live(static_cast<Kind>(kind)) == 0);
}

/// A parent that is needed by another one: whichever of them stands first, the device goes after the channel.
void parentsOfParents() {
  const VerbsLib lib = fake();
  OwnTable table(&lib);
  for (const bool contextFirst : {true, false}) {
    Object* context = make(table, Kind::context);
    Object* channel = make(table, Kind::channel, context);
    Object* cq = contextFirst ? make(table, Kind::cq, context, channel) : make(table, Kind::cq, channel, context);
    CHECK(table.close(context->id) == 0 && table.close(channel->id) == 0);
    CHECK(wasDestroyed(""));
    CHECK(table.close(cq->id) == 0);
    CHECK(wasDestroyed("qhc"));
    // A queue that could not be made holds nobody.
    Object* again = make(table, Kind::context);
    Object* none = table.begin(Kind::cq, &again, 1);
    table.dropped(none);
    CHECK(table.close(again->id) == 0);
    CHECK(wasDestroyed("c"));
  }
}

void numbers() {
  const VerbsLib lib = fake();
  OwnTable table(&lib);
  Object* first = make(table, Kind::context);
  const int32_t id = first->id;
  CHECK(table.find(id, Kind::context) == first);
  CHECK(table.find(id, Kind::pd) == nullptr);
  CHECK(table.find(0, Kind::context) == nullptr && table.find(-5, Kind::context) == nullptr &&
        table.find(1 << 30, Kind::context) == nullptr);
  CHECK(table.close(id) == 0);
  CHECK(table.close(id) == -EBADF);
  // Many come and go: a number of one that is gone never names another.
  for (int i = 0; i < 5000; i++) {
    Object* next = make(table, Kind::context);
    CHECK(next->id != id && next->id > 0);
    CHECK(table.close(next->id) == 0);
  }
  CHECK(table.find(id, Kind::context) == nullptr);
  Object* kept[300];
  for (Object*& one : kept) one = make(table, Kind::context);
  for (Object* one : kept) CHECK(table.find(one->id, Kind::context) == one);
  CHECK(table.closeAll() == 0);
  CHECK(table.live(Kind::context) == 0);
  destroyedCount = 0;
}

void failuresAreTold() {
  const VerbsLib lib = fake();
  OwnTable table(&lib);
  Object* context = make(table, Kind::context);
  Object* pd = make(table, Kind::pd, context);
  refuseWith = EBUSY;
  CHECK(table.close(pd->id) == -EBUSY);
  refuseWith = 0;
  CHECK(table.close(context->id) == 0);
  destroyedCount = 0;
}

void owners() {
  const VerbsLib lib = fake();
  uint8_t memory[64];
  disowned = 0;
  {
    OwnTable table(&lib);
    Object* context = make(table, Kind::context);
    Object* pd = make(table, Kind::pd, context);
    Object* region = makeRegion(table, pd, memory, sizeof memory, 1);
    makeRegion(table, pd, memory, sizeof memory, 2);
    CHECK(table.close(region->id) == 0);
    CHECK(disowned == 1);
  }
  // The table closes what is left.
  CHECK(disowned == 2);
  destroyedCount = 0;
}

// --- posting: a context whose operations note what they get

ibv_send_wr seen[128];
ibv_sge seenPieces[128][kPiecesMax];
size_t seenCount = 0;
size_t acceptMax = 1000;

int postSend(ibv_qp*, ibv_send_wr* request, ibv_send_wr** bad) {
  for (; request != nullptr; request = request->next) {
    if (seenCount == acceptMax) {
      *bad = request;
      return ENOMEM;
    }
    seen[seenCount] = *request;
    for (int i = 0; i < request->num_sge; i++) seenPieces[seenCount][i] = request->sg_list[i];
    seenCount++;
  }
  return 0;
}

void write(uint32_t* words, int32_t region, uint64_t offset, uint32_t bytes) {
  memset(words, 0, kRequestWords * 4);
  words[0] = IBV_WR_RDMA_WRITE;
  words[1] = IBV_SEND_SIGNALED;
  words[2] = 7;
  words[3] = 1;
  words[4] = 0x55;
  words[5] = 2;
  words[6] = 99;
  words[8] = 1;
  words[12] = static_cast<uint32_t>(region);
  words[13] = static_cast<uint32_t>(offset);
  words[14] = static_cast<uint32_t>(offset >> 32);
  words[15] = bytes;
}

void posting() {
  const VerbsLib lib = fake();
  OwnTable table(&lib);
  ibv_context context;
  memset(&context, 0, sizeof context);
  context.ops.post_send = postSend;
  ibv_qp qp;
  memset(&qp, 0, sizeof qp);
  qp.context = &context;
  uint8_t memory[1000];
  Object* owner = make(table, Kind::context);
  Object* pd = make(table, Kind::pd, owner);
  Object* region = makeRegion(table, pd, memory, sizeof memory, 44);
  static uint32_t words[100 * kRequestWords];
  for (size_t i = 0; i < 100; i++) write(words + i * kRequestWords, region->id, i, 10);
  seenCount = 0;
  CHECK(postSends(table, &qp, words, 100) == 100);
  CHECK(seenCount == 100);
  CHECK(seen[99].wr_id == ((1ull << 32) | 7) && seen[99].wr.rdma.remote_addr == ((2ull << 32) | 0x55) && seen[99].wr.rdma.rkey == 99);
  CHECK(seenPieces[99][0].addr == reinterpret_cast<uint64_t>(memory) + 99 && seenPieces[99][0].length == 10 &&
        seenPieces[99][0].lkey == 44);

  // Out of bounds, in every way: what stands before it is posted.
  const struct {
    uint64_t offset;
    uint32_t bytes;
  } bad[] = {{1001, 0}, {1000, 1}, {0, 1001}, {0xffffffffffffffff, 1}, {991, 10}};
  for (const auto& one : bad) {
    write(words + 40 * kRequestWords, region->id, one.offset, one.bytes);
    seenCount = 0;
    CHECK(postSends(table, &qp, words, 100) == 40);
    CHECK(seenCount == 40);
    CHECK(words[40 * kRequestWords + kErrorWord] == EINVAL);
  }
  write(words, region->id, 1000, 0);
  CHECK(postSends(table, &qp, words, 1) == 1);
  for (const auto& [word, value] : {std::pair<int, uint32_t>{0, 77}, {1, 1u << 20}, {8, 5}, {12, 12345}}) {
    write(words, region->id, 0, 1);
    words[word] = value;
    CHECK(postSends(table, &qp, words, 1) == 0);
    CHECK(words[kErrorWord] == EINVAL);
  }
  // The device takes no more.
  for (size_t i = 0; i < 100; i++) write(words + i * kRequestWords, region->id, 0, 1);
  seenCount = 0;
  acceptMax = 50;
  CHECK(postSends(table, &qp, words, 100) == 50);
  CHECK(words[50 * kRequestWords + kErrorWord] == ENOMEM);
  acceptMax = 1000;
  // A region that is gone.
  const int32_t gone = region->id;
  CHECK(table.close(gone) == 0);
  write(words, gone, 0, 1);
  CHECK(postSends(table, &qp, words, 1) == 0);
  CHECK(words[kErrorWord] == EINVAL);
  CHECK(table.closeAll() == 0);
  destroyedCount = 0;
}

int waiting = 0;
int pollCq(ibv_cq*, int room, ibv_wc* out) {
  if (waiting < 0) return -1;
  int count = 0;
  for (; count < room && waiting > 0; count++, waiting--) {
    memset(&out[count], 0, sizeof out[count]);
    out[count].wr_id = (static_cast<uint64_t>(waiting) << 32) | 3;
    out[count].status = IBV_WC_RETRY_EXC_ERR;
    out[count].byte_len = 12;
    out[count].qp_num = 0x123456;
  }
  return count;
}

void polling() {
  ibv_context context;
  memset(&context, 0, sizeof context);
  context.ops.poll_cq = pollCq;
  ibv_cq cq;
  memset(&cq, 0, sizeof cq);
  cq.context = &context;
  uint32_t words[100 * kCompletionWords];
  waiting = 70;
  CHECK(pollCompletions(&cq, words, 100) == 70);
  CHECK(words[1] == 70 && words[0] == 3 && words[2] == IBV_WC_RETRY_EXC_ERR && words[4] == 12 && words[6] == 0x123456);
  CHECK(words[69 * kCompletionWords + 1] == 1);
  CHECK(pollCompletions(&cq, words, 100) == 0);
  waiting = 70;
  CHECK(pollCompletions(&cq, words, 40) == 40);
  CHECK(pollCompletions(&cq, words, 40) == 30);
  CHECK(pollCompletions(&cq, words, 0) == 0);
  waiting = -1;
  CHECK(pollCompletions(&cq, words, 5) == -EIO);
}

}  // namespace

int main() {
  anyOrder();
  parentsOfParents();
  numbers();
  failuresAreTold();
  owners();
  posting();
  polling();
  return check::finish("objects");
}
