#!/usr/bin/env python3
"""A rank of a job of `multirail run`, beside rank 0 in Node (job-rank0.mjs): written from docs/internals/OOB.md and docs/internals/PROTOCOL.md.

    multirail run -n 2 sh examples/python-peer/job.sh

Hello, modex, one eager message and one rendezvous each way with rank 0, BYE, finalized."""

import asyncio
import hashlib
import sys

from messages import Request
from oob import Channel
from rails import Job
from sending import Send

WORLD_CTX = 0  # of messages between ranks of the world (PROTOCOL.md section 6)
EAGER_TAG, RENDEZVOUS_TAG = 1, 2
RENDEZVOUS_BYTES = 1_000_003
# Of a sender: its own affair.
LIMITS = {"eagerLimitBytes": 16 * 1024, "rndvInlineBytes": 16 * 1024, "fragBytes": 128 * 1024, "retainedBytesMax": 4 * 1024 * 1024}


def pattern(seed, size):
    return bytes((seed + 31 * i + i // 256) % 256 for i in range(size))


async def until(condition, what):
    """The loop of this program turns by itself: what it waits for is looked at now and then."""
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError("%s: not within 30 s" % what)


async def main():
    channel = Channel()
    if (channel.rank, channel.size) != (1, 2):
        raise ValueError("this program is rank 1 of 2")
    await channel.join()
    job = Job({"rank": channel.rank, "incarnation": channel.incarnation, "jobId": channel.job_id, "secret": channel.secret.hex(),
               "hostId": channel.host_id, "links": 1, "unexpectedBytesMax": 16 * 1024 * 1024, "peerTimeoutMs": 60_000,
               "payloadCrc": False, **LIMITS})
    entries = await channel.modex(await job.open())
    job.meet(0, entries[0])
    if "cut" in sys.argv:
        channel.socket.writer.transport.abort()

    def on_exit(rank, info):
        # One that had left in good order has said BYE, or would say it again over a rail; it is taken as said.
        if rank == 0 and not info["finalized"]:
            job.fail_peer("ERR_PROC_FAILED")
        elif rank == 0:
            job.on_bye()
    channel.on_exit = on_exit

    requests = [Request(0, WORLD_CTX, EAGER_TAG, 1024), Request(0, WORLD_CTX, RENDEZVOUS_TAG, RENDEZVOUS_BYTES)]
    for request in requests:
        job.messages.post(request)
    sends = [Send(WORLD_CTX, EAGER_TAG, b"hello from Python"), Send(WORLD_CTX, RENDEZVOUS_TAG, pattern(7, RENDEZVOUS_BYTES))]
    for send in sends:
        job.sender.post(send)
    job.pump()
    await until(lambda: all(one.done for one in requests + sends), "the messages")
    for one in requests + sends:
        if one.error is not None:
            raise RuntimeError(one.error)
    eager, rendezvous = (bytes(one.buffer[:one.received]) for one in requests)
    if rendezvous != pattern(3, RENDEZVOUS_BYTES):
        raise RuntimeError("the rendezvous brought other bytes")
    print("rank 1, Python: %s; %d bytes, SHA-256 %s" % (eager.decode(), len(rendezvous), hashlib.sha256(rendezvous).hexdigest()[:16]), flush=True)

    job.finalize()
    await until(lambda: job.has_left, "the end")
    # No rank goes while another one may still dial it.
    await channel.barrier("finalize")
    await job.close()
    await channel.leave()


if __name__ == "__main__":
    asyncio.run(main())
