"""The out-of-band channel of docs/internals/OOB.md: what a rank is given, a WebSocket, protobuf by hand, the handshake, the session."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import stat
import struct
import zlib
import time
from urllib.parse import urlsplit

VERSION = 2
MESSAGE_BYTES_MAX = 2 * 1024 * 1024
HANDSHAKE_BYTES_MAX = 16 * 1024
MODEX_BYTES_MAX = 256 * 1024
NUMBER_MAX = 2**53 - 1

# Section 8: number, name and kind of each field. Only what this rank reads or writes; a reader passes over the rest.
MESSAGES = {
    "challenge": {1: ("version", "uint"), 2: ("nonce", "bytes"), 3: ("job_id", "text")},
    "hello": {1: ("version", "uint"), 2: ("job_id", "text"), 3: ("rank", "uint"), 4: ("size", "uint"), 5: ("incarnation", "uint"),
              6: ("pid", "uint"), 7: ("host_id", "text"), 8: ("nonce", "bytes"), 9: ("received", "uint"), 10: ("proof", "bytes"),
              11: ("lifeline", "bool")},
    "welcome": {1: ("received", "uint"), 2: ("proof", "bytes")},
    "refused": {1: ("reason", "text"), 2: ("text", "text")},
    "ping": {},
    "ack": {},
    "modex_put": {1: ("json", "bytes")},
    "modex_part": {2: ("last", "bool"), 3: ("packed", "bytes")},
    "modex_update": {1: ("rank", "uint"), 2: ("json", "bytes")},
    "barrier_enter": {1: ("name", "text"), 2: ("tolerant", "bool")},
    "barrier_done": {1: ("name", "text")},
    "collective_failed": {1: ("modex", "bool"), 2: ("name", "text"), 3: ("rank", "uint"), 4: ("text", "text")},
    "abort": {1: ("rank", "uint"), 2: ("code", "sint"), 3: ("reason", "text"), 4: ("stack", "text")},
    "process_exit": {1: ("rank", "uint"), 2: ("code", "sint"), 3: ("signal", "text"), 4: ("finalized", "bool"), 5: ("lost", "bool")},
    "finalized": {},
    "waits_request": {},
    "rail_fault": {},
}
BODIES = {10: "challenge", 11: "hello", 12: "welcome", 13: "refused", 14: "ping", 15: "ack", 20: "modex_put", 21: "modex_part",
          22: "modex_update", 23: "barrier_enter", 24: "barrier_done", 25: "collective_failed", 26: "abort", 27: "process_exit", 29: "finalized",
          31: "waits_request", 51: "rail_fault"}
DEFAULTS = {"uint": 0, "sint": 0, "bool": False, "text": "", "bytes": b""}


def unpack_modex(packed, size):
    """Section 6: raw DEFLATE of the length of each rank's JSON, and then the JSON of each."""
    inflater = zlib.decompressobj(-15)
    plain = inflater.decompress(packed, size * (4 + MODEX_BYTES_MAX))
    at, entries = 4 * size, {}
    for rank, length in enumerate(struct.unpack_from("<%dI" % size, plain)):
        entries[rank] = json.loads(plain[at:at + length])
        at += length
    return entries


class OobError(Exception):
    """The channel cannot be had, or the other side breaks its protocol."""


# ---------------------------------------------------------------- protobuf (section 2)


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode(message, fields):
    out = b""
    for number, (name, kind) in MESSAGES[message].items():
        value = fields.get(name, DEFAULTS.get(kind))
        if kind in MESSAGES:
            raise OobError("this rank sends no lists")
        if value == DEFAULTS[kind]:
            continue
        if kind in ("text", "bytes"):
            data = value.encode() if kind == "text" else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
        else:
            out += varint(number << 3) + varint((value << 1 ^ value >> 63) & (2**64 - 1) if kind == "sint" else int(value))
    return out


def read_varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise OobError("a varint that does not end")
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value & (2**64 - 1), at


def raw_fields(data):
    """Number, type and value of every field, in order."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == 0:
            value, at = read_varint(data, at)
        elif wire_type in (1, 5):
            size = 8 if wire_type == 1 else 4
            value, at = data[at:at + size], at + size
        elif wire_type == 2:
            size, at = read_varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise OobError("a field of type %d" % wire_type)
        if at > len(data):
            raise OobError("a field that is cut off")
        yield number, wire_type, value


def decode(message, data):
    fields = {name: [] if kind in MESSAGES else DEFAULTS[kind] for name, kind in MESSAGES[message].values()}
    for number, wire_type, value in raw_fields(data):
        if number not in MESSAGES[message]:
            continue
        name, kind = MESSAGES[message][number]
        if (wire_type == 2) != (kind in MESSAGES or kind in ("text", "bytes")):
            raise OobError("%s.%s of another type" % (message, name))
        if kind in MESSAGES:
            fields[name].append(decode(kind, value))
        elif kind == "text":
            fields[name] = value.decode()
        elif kind == "bytes":
            fields[name] = value
        elif kind == "sint":
            fields[name] = value >> 1 ^ -(value & 1)
        elif value > NUMBER_MAX:
            raise OobError("%s.%s is out of range" % (message, name))
        else:
            fields[name] = bool(value) if kind == "bool" else value
    return fields


def encode_envelope(sequence, acknowledged, body, fields):
    number = next(n for n, name in BODIES.items() if name == body)
    data = encode(body, fields)
    head = (varint(1 << 3) + varint(sequence) if sequence else b"") + (varint(2 << 3) + varint(acknowledged) if acknowledged else b"")
    return head + varint(number << 3 | 2) + varint(len(data)) + data


def decode_envelope(data):
    numbers, body = {1: 0, 2: 0}, None
    for number, wire_type, value in raw_fields(data):
        if number in numbers and wire_type == 0:
            numbers[number] = value
        elif number in BODIES and wire_type == 2:
            body = (BODIES[number], decode(BODIES[number], value))
    if body is None or max(numbers.values()) > NUMBER_MAX:
        raise OobError("an envelope without a body that is known here")
    return numbers[1], numbers[2], body[0], body[1]


# ---------------------------------------------------------------- what a rank is given (section 1)


def read_secret(environment):
    secret = None
    if environment.get("MULTIRAIL_SECRET_FD", "").isdigit():
        number = int(environment["MULTIRAIL_SECRET_FD"])
        try:
            mode = os.fstat(number).st_mode
            if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISREG(mode):
                with os.fdopen(number, "rb") as stream:
                    secret = stream.read(4097)
        except OSError:
            pass
    if secret is None and environment.get("MULTIRAIL_SECRET_FILE"):
        with open(environment["MULTIRAIL_SECRET_FILE"], "rb") as stream:
            secret = stream.read(4097).rstrip(b"\r\n")
    if secret is None or not 16 <= len(secret) <= 4096:
        raise OobError("the job's secret did not reach this process")
    return secret


def host_id():
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
        boot = stream.read().strip()
    return "%s/%s" % (boot, "".join(c for c in os.readlink("/proc/self/ns/net") if c.isdigit()))


def proof(secret, label, server_nonce, client_nonce, claims):
    text = json.dumps(["multirail-oob", label, server_nonce.hex(), client_nonce.hex(), *claims], ensure_ascii=False, separators=(",", ":"))
    return hmac.new(secret, text.encode(), hashlib.sha256).digest()


def proof_of_rank(secret, server_nonce, hello):
    names = ("version", "job_id", "rank", "size", "incarnation", "pid", "host_id", "received", "lifeline")
    return proof(secret, "rank", server_nonce, hello["nonce"], [hello[name] for name in names])


def proof_of_launcher(secret, server_nonce, hello, received):
    names = ("version", "job_id", "rank", "incarnation")
    return proof(secret, "launcher", server_nonce, hello["nonce"], [hello[name] for name in names] + [received])


# ---------------------------------------------------------------- a WebSocket (section 2)


class WebSocket:
    """The client's side of RFC 6455, as far as this channel needs it."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.stranger_bytes = 0  # None: the other side is proved

    @staticmethod
    async def connect(url):
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        key = base64.b64encode(os.urandom(16)).decode()
        head = ["GET %s HTTP/1.1" % parts.path, "Host: %s" % parts.netloc, "Upgrade: websocket", "Connection: Upgrade",
                "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: " + key]
        writer.write(("\r\n".join(head) + "\r\n\r\n").encode())
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in answer[1:])}
        if answer[0].split(" ")[1] != "101" or headers.get("sec-websocket-accept") != accept:
            raise OobError("%s is no server of the channel: %s" % (url, answer[0]))
        return WebSocket(reader, writer)

    def frame(self, opcode, data):
        size = len(data)
        length = struct.pack("!B", 0x80 | size) if size < 126 else \
            struct.pack("!BH", 0xFE, size) if size < 65536 else struct.pack("!BQ", 0xFF, size)
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[i & 3] for i, byte in enumerate(data))
        self.writer.write(bytes([0x80 | opcode]) + length + mask + masked)

    async def message(self):
        """The next binary message, whole."""
        whole = b""
        while True:
            first, size = await self.reader.readexactly(2)
            opcode, final = first & 0x0F, first & 0x80
            if size == 126:
                (size,) = struct.unpack("!H", await self.reader.readexactly(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", await self.reader.readexactly(8))
            if first & 0x70 or size > 0x7FFFFFFF or len(whole) + size > MESSAGE_BYTES_MAX:
                raise OobError("a frame that cannot be")
            if self.stranger_bytes is not None:
                self.stranger_bytes += size
                if self.stranger_bytes > HANDSHAKE_BYTES_MAX:
                    raise OobError("too many bytes before the handshake was done")
            data = await self.reader.readexactly(size)
            if opcode == 8:
                raise OobError("closed (%s)" % (struct.unpack("!H", data[:2])[0] if len(data) >= 2 else "no status"))
            if opcode == 9:
                self.frame(10, data)
            elif opcode in (0, 2):
                whole += data
                if final:
                    return whole
            elif opcode != 10:
                raise OobError("a text message")


# ---------------------------------------------------------------- the channel (sections 3 to 7)


class Channel:
    """This rank's session with the launcher, over any number of connections."""

    def __init__(self, environment=os.environ):
        self.rank = int(environment["MULTIRAIL_RANK"])
        self.size = int(environment["MULTIRAIL_SIZE"])
        self.job_id = environment["MULTIRAIL_JOB_ID"]
        self.urls = environment["MULTIRAIL_OOB"].split(",")
        self.launcher_pid = int(environment.get("MULTIRAIL_LAUNCHER_PID", 0))
        self.secret = read_secret(environment)
        self.incarnation = time.time_ns() // 1000
        self.host_id = host_id()
        self.received = self.sent = self.acknowledged = 0
        self.outbox = []  # (sequence, body, fields), kept until acknowledged
        self.socket = None
        self.news = asyncio.Condition()
        self.modex_entries, self.modex_packed, self.barriers_done, self.failure = None, b"", set(), None
        self.on_exit = lambda rank, info: None

    async def join(self):
        await self.connect()
        self.reading = asyncio.ensure_future(self.read())

    async def connect(self):
        """Tries all addresses in turn; refusals by all of them are final."""
        pause, refusals = 0.05, {}
        while len(refusals) < len(self.urls):
            for url in self.urls:
                try:
                    await asyncio.wait_for(self.handshake(url), 4)
                    return
                except PermissionError as error:
                    refusals[url] = str(error)
                except (OSError, OobError, asyncio.TimeoutError, asyncio.IncompleteReadError):
                    refusals.pop(url, None)
            if os.getppid() != self.launcher_pid:
                raise OobError("the launcher is gone")
            await asyncio.sleep(pause)
            pause = min(1, pause * 2)
        raise OobError("refused: %s" % "; ".join(refusals.values()))

    async def handshake(self, url):
        socket = await WebSocket.connect(url)
        try:
            _, _, kind, challenge = decode_envelope(await socket.message())
            if kind != "challenge" or challenge["version"] != VERSION:
                raise OobError("%s instead of a challenge of version %d" % (kind, VERSION))
            hello = {"version": VERSION, "job_id": self.job_id, "rank": self.rank, "size": self.size, "incarnation": self.incarnation,
                     "pid": os.getpid(), "host_id": self.host_id, "nonce": os.urandom(32), "received": self.received, "lifeline": False}
            hello["proof"] = proof_of_rank(self.secret, challenge["nonce"], hello)
            socket.frame(2, encode_envelope(0, 0, "hello", hello))
            _, _, kind, answer = decode_envelope(await socket.message())
            if kind == "refused":
                raise PermissionError("%s: %s" % (answer["reason"], answer["text"]))
            expected = proof_of_launcher(self.secret, challenge["nonce"], hello, answer.get("received", 0))
            if kind != "welcome" or not hmac.compare_digest(answer["proof"], expected):
                raise OobError("the server does not know the job's secret")
        except BaseException:
            socket.writer.close()
            raise
        socket.stranger_bytes = None
        self.socket = socket
        self.take_acknowledged(answer["received"])
        for sequence, body, fields in self.outbox:
            socket.frame(2, encode_envelope(sequence, self.received, body, fields))

    def send(self, body, **fields):
        self.sent += 1
        self.outbox.append((self.sent, body, fields))
        if self.socket is not None:
            self.socket.frame(2, encode_envelope(self.sent, self.received, body, fields))

    def take_acknowledged(self, sequence):
        if sequence > self.sent:
            raise OobError("message %d is acknowledged, and was never sent" % sequence)
        self.acknowledged = max(self.acknowledged, sequence)
        self.outbox = [one for one in self.outbox if one[0] > self.acknowledged]

    async def read(self):
        """Takes what comes, over this connection and those that follow it."""
        while True:
            try:
                sequence, acknowledged, kind, body = decode_envelope(await self.socket.message())
                self.take_acknowledged(acknowledged)
                if sequence == 0 or sequence == self.received + 1:
                    self.received = max(self.received, sequence)
                    self.handle(kind, body)
                elif sequence > self.received:
                    raise OobError("message %d after %d" % (sequence, self.received))
                if sequence > 0:
                    self.socket.frame(2, encode_envelope(0, self.received, "ack", {}))
                async with self.news:
                    self.news.notify_all()
            except (OSError, OobError, asyncio.IncompleteReadError):
                self.socket.writer.close()
                self.socket = None
                await self.connect()

    def handle(self, kind, body):
        if kind == "modex_part":
            self.modex_packed += body["packed"]
            if body["last"]:
                self.modex_entries = unpack_modex(self.modex_packed, self.size)
        elif kind == "collective_failed":
            self.failure = body["text"]
        elif kind == "abort":
            self.failure = "rank %d aborted the job: %s" % (body["rank"], body["reason"])
        elif kind == "process_exit":
            self.on_exit(body["rank"], body)
        elif kind == "barrier_done":
            self.barriers_done.add(body["name"])
        elif kind not in ("ping", "ack", "modex_update", "waits_request", "rail_fault"):
            raise OobError("%s from the launcher" % kind)

    async def until(self, condition):
        async with self.news:
            await self.news.wait_for(lambda: self.failure is not None or condition())
        if self.failure is not None:
            raise OobError(self.failure)

    async def modex(self, entry):
        self.send("modex_put", json=json.dumps(entry).encode())
        await self.until(lambda: self.modex_entries is not None)
        return self.modex_entries

    async def barrier(self, name):
        """Ranks that are dead count as arrived."""
        self.send("barrier_enter", name=name, tolerant=True)
        await self.until(lambda: name in self.barriers_done)

    async def leave(self):
        """After the rails: this rank is done, and may exit."""
        self.send("finalized")
        await self.until(lambda: self.acknowledged == self.sent)
        self.reading.cancel()
        self.socket.frame(8, struct.pack("!H", 1000))
        await self.socket.writer.drain()
        self.socket.writer.close()
