// See work.h.
#include "work.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

namespace noderdma {
namespace {

/// Posted in one call of the library, and taken in one: more go by several.
constexpr size_t kBatch = 32;
constexpr size_t kPieceWords = 5;
constexpr size_t kPiecesAt = 12;

uint64_t pair(const uint32_t* words) { return words[0] | (static_cast<uint64_t>(words[1]) << 32); }

void setPair(uint32_t* words, uint64_t value) {
  words[0] = static_cast<uint32_t>(value);
  words[1] = static_cast<uint32_t>(value >> 32);
}

/// The pieces of one request; false when one is not within a region of ours.
bool pieces(const Table& table, const uint32_t* words, ibv_sge* list, int* count) {
  const uint32_t wanted = words[8];
  if (wanted > static_cast<uint32_t>(kPiecesMax)) return false;
  for (uint32_t i = 0; i < wanted; i++) {
    const uint32_t* piece = words + kPiecesAt + i * kPieceWords;
    const Object* region = table.find(static_cast<int32_t>(piece[0]), Kind::mr);
    if (region == nullptr) return false;
    const ibv_mr* mr = region->mr();
    const uint64_t offset = pair(piece + 1);
    const uint32_t bytes = piece[3];
    if (offset > mr->length || bytes > mr->length - offset) return false;
    list[i].addr = reinterpret_cast<uint64_t>(mr->addr) + offset;
    list[i].length = bytes;
    list[i].lkey = mr->lkey;
  }
  *count = static_cast<int>(wanted);
  return true;
}

bool isKnown(uint32_t opcode) {
  return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
         opcode == IBV_WR_RDMA_READ;
}

constexpr uint32_t kFlags = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;

bool readSend(const Table& table, const uint32_t* words, ibv_send_wr* request, ibv_sge* list) {
  memset(request, 0, sizeof *request);
  if (!isKnown(words[0]) || (words[1] & ~kFlags) != 0 || !pieces(table, words, list, &request->num_sge)) return false;
  request->opcode = static_cast<ibv_wr_opcode>(words[0]);
  request->send_flags = words[1];
  request->wr_id = pair(words + 2);
  request->sg_list = list;
  request->imm_data = htonl(words[7]);
  request->wr.rdma.remote_addr = pair(words + 4);
  request->wr.rdma.rkey = words[6];
  return true;
}

bool readReceive(const Table& table, const uint32_t* words, ibv_recv_wr* request, ibv_sge* list) {
  memset(request, 0, sizeof *request);
  if (!pieces(table, words, list, &request->num_sge)) return false;
  request->wr_id = pair(words + 2);
  request->sg_list = list;
  return true;
}

int postTo(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) { return ibv_post_send(qp, first, bad); }
int postTo(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) { return ibv_post_recv(qp, first, bad); }

template <typename Request>
size_t post(const Table& table, ibv_qp* qp, uint32_t* words, size_t count,
            bool (*read)(const Table&, const uint32_t*, Request*, ibv_sge*)) {
  Request requests[kBatch];
  ibv_sge lists[kBatch][kPiecesMax];
  size_t posted = 0;
  while (posted < count) {
    size_t ready = 0;
    bool sound = true;
    while (ready < kBatch && posted + ready < count) {
      sound = read(table, words + (posted + ready) * kRequestWords, &requests[ready], lists[ready]);
      if (!sound) break;
      if (ready > 0) requests[ready - 1].next = &requests[ready];
      ready++;
    }
    if (ready > 0) {
      Request* bad = nullptr;
      const int failure = postTo(qp, &requests[0], &bad);
      if (failure != 0) {
        const size_t accepted = bad == nullptr ? 0 : static_cast<size_t>(bad - requests);
        posted += accepted < ready ? accepted : 0;
        words[posted * kRequestWords + kErrorWord] = static_cast<uint32_t>(failure > 0 ? failure : errno);
        return posted;
      }
      posted += ready;
    }
    if (!sound) {
      words[posted * kRequestWords + kErrorWord] = EINVAL;
      return posted;
    }
  }
  return posted;
}

}  // namespace

size_t postSends(const Table& table, ibv_qp* qp, uint32_t* words, size_t count) {
  return post<ibv_send_wr>(table, qp, words, count, readSend);
}

size_t postReceives(const Table& table, ibv_qp* qp, uint32_t* words, size_t count) {
  return post<ibv_recv_wr>(table, qp, words, count, readReceive);
}

int pollCompletions(ibv_cq* cq, uint32_t* words, size_t capacity) {
  ibv_wc completions[kBatch];
  size_t taken = 0;
  while (taken < capacity) {
    const size_t room = capacity - taken < kBatch ? capacity - taken : kBatch;
    const int found = ibv_poll_cq(cq, static_cast<int>(room), completions);
    if (found < 0) return taken > 0 ? static_cast<int>(taken) : -EIO;
    for (int i = 0; i < found; i++, taken++) {
      const ibv_wc& completion = completions[i];
      uint32_t* out = words + taken * kCompletionWords;
      setPair(out, completion.wr_id);
      out[2] = completion.status;
      out[3] = completion.opcode;
      out[4] = completion.byte_len;
      out[5] = ntohl(completion.imm_data);
      out[6] = completion.qp_num;
      out[7] = completion.wc_flags;
    }
    if (static_cast<size_t>(found) < room) break;
  }
  return static_cast<int>(taken);
}

}  // namespace noderdma
