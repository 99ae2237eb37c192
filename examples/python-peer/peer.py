#!/usr/bin/env python3
"""A receiver of multirail messages, written from docs/internals/PROTOCOL.md, under the driver convention of docs/internals/WIRE-SUITE.md:
commands come as lines of JSON on the standard input, answers go to the standard output."""

import asyncio
import hashlib
import json
import sys

import wire
from messages import Request
from rails import Job
from sending import Send

FEATURES = ["receive", "send", "accept", "probe", "contexts", "rails", "leave"]


class Driver:
    def __init__(self):
        self.job = None
        self.requests = {}

    async def describe(self, _):
        return {"driver": 1, "name": "python-peer", "version": "1", "protocol": wire.PROTOCOL_VERSION, "features": FEATURES,
                "transports": ["tcp"], "hostId": "python-peer"}

    async def start(self, command):
        await self.stop(command)
        if command["rank"] <= command["peer"]["rank"]:
            raise ValueError("this peer does not dial")
        self.job = Job({**command, "hostId": "python-peer"})
        entry = await self.job.open()
        self.job.meet(command["peer"]["rank"], command["peer"]["entry"])
        return {"entry": entry}

    async def recv(self, command):
        request = Request(command["source"], command["ctx"], command["tag"], command["bytes"])
        self.requests[command["request"]] = request
        self.job.messages.post(request)
        self.job.pump()
        return {}

    async def send(self, command):
        seed = command["seed"]
        data = bytes((seed + 31 * i + i // 256) % 256 for i in range(command["bytes"]))
        send = Send(command["ctx"], command["tag"], data, command["sync"])
        self.requests[command["request"]] = send
        self.job.sender.post(send)
        self.job.pump()
        return {}

    async def test(self, command):
        request = self.requests[command["request"]]
        if not request.done:
            return {"done": False}
        if isinstance(request, Send):
            return {"done": True} if request.error is None else {"done": True, "error": request.error}
        answer = {"done": True, "cancelled": request.cancelled, "source": request.matched_source, "tag": request.matched_tag,
                  "bytes": request.received, "sha256": hashlib.sha256(request.buffer[:request.received]).hexdigest()}
        if request.error is not None:
            answer["error"] = request.error
        return answer

    async def cancel(self, command):
        return {"cancelled": self.job.messages.cancel(self.requests[command["request"]])}

    async def probe(self, command):
        found = self.job.messages.probe(command["source"], command["ctx"], command["tag"])
        if found is None:
            return {"found": False}
        return {"found": True, "source": found.packet.source, "tag": found.packet.tag, "bytes": found.message_bytes}

    async def freeContext(self, command):
        self.job.messages.free_context(command["ctx"])
        self.job.pump()
        return {}

    async def rails(self, _):
        views = []
        for rail in self.job.rails:
            view = {"state": rail.state, "epoch": rail.epoch}
            if rail.last_reason is not None:
                view["lastReason"] = rail.last_reason
            views.append(view)
        return {"rails": views}

    async def finalize(self, _):
        self.job.finalize()
        return {}

    async def left(self, _):
        return {"left": self.job.has_left}

    async def stop(self, _):
        if self.job is not None:
            await self.job.close()
        self.job, self.requests = None, {}
        return {}


COMMANDS = {"describe", "start", "recv", "test", "cancel", "send", "probe", "freeContext", "rails", "finalize", "left", "stop"}


async def main():
    driver = Driver()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        command = json.loads(line)
        try:
            if command["do"] not in COMMANDS:
                raise ValueError("unknown command")
            answer = await getattr(driver, command["do"])(command)
        except Exception as error:  # The tester is told, and goes on.
            answer = {"failed": "%s: %s" % (type(error).__name__, error)}
        print(json.dumps({"id": command.get("id"), **answer}), flush=True)
    await driver.stop({})


if __name__ == "__main__":
    asyncio.run(main())
