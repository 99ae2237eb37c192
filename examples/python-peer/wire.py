"""Frames and packets of docs/internals/PROTOCOL.md, sections 1, 3, 4 and 6: bytes in, fields out, and back."""

import hashlib
import hmac
import struct

PROTOCOL_VERSION = 2

# Kinds of frames (section 3).
DATA, COUNT, PROBE, PROBE_ANSWER, NACK_FRAME, BYE = 1, 2, 3, 4, 5, 6
PROBE_PADDING_BYTES_MAX = 64 * 1024
HELLO, CHALLENGE, PROOF, WELCOME, REFUSE, LIVENESS = 16, 17, 18, 19, 20, 21
PLACED, PROMPT, PAYLOAD_CRC = 1, 2, 4
HEADER = struct.Struct("<BBHHHIIIIdII")
MAGIC = 0x524D
HEADER_BYTES = 40
# Limits of section 15: bytes of packet header and of payload.
LIVE_LIMITS = (4096, 16_842_752)
HANDSHAKE_LIMITS = (472, 0)

# Types of packets (section 6).
MATCH, RNDV, RGET, ACK, FRAG, PUT, FIN = 1, 2, 3, 4, 6, 8, 9
NOTIFY, RESTARTACK, RESTARTNACK, RECVERRNOTIFY, RAILDOWN, CREDIT = 10, 11, 12, 13, 14, 15
CHARGED, SYNC, CONTIG, TO_SENDER, VOID = 1, 2, 4, 8, 16
WINDOWS_MAX, DEAD_RAILS_MAX, RANGES_MAX = 16, 128, 128

# Reasons of REFUSE (section 4).
BAD_VERSION, BAD_JOB, UNKNOWN_RANK, OLD_INCARNATION, PEER_FAILED = 1, 2, 3, 4, 5
STALE_EPOCH, RAIL_MISMATCH, FINALIZED = 6, 7, 8


class ProtocolError(Exception):
    """Whoever sent this breaks the protocol: its rail epoch ends as damaged."""


class OtherVersion(ProtocolError):
    """The frame is of another version."""


# ---------------------------------------------------------------- CRC32C (section 1)


def _table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


CRC_TABLE = _table()


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


# ---------------------------------------------------------------- frames (section 3)


def ahead(a, b):
    """How far the serial number a is ahead of b; negative when it is behind (section 1)."""
    difference = (a - b) & 0xFFFFFFFF
    return difference - 0x100000000 if difference & 0x80000000 else difference


class Frame:
    """A frame header, with the packet header once it is there."""

    def __init__(self, fields, packet=b""):
        (self.version, self.kind, self.flags, self.packet_bytes, self.magic, self.payload_bytes, self.number,
         self.count, self.alive_ms, self.received, self.payload_crc, self.crc) = fields
        self.packet = packet


def check_lengths(data, limits):
    """Looks at the 40 bytes of a header before anything is kept for its frame."""
    frame = Frame(HEADER.unpack_from(data))
    if frame.magic != MAGIC:
        raise ProtocolError("no frame of multirail")
    if frame.version != 1:
        raise OtherVersion("frame version %d" % frame.version)
    if frame.packet_bytes > limits[0] or frame.payload_bytes > limits[1]:
        raise ProtocolError("a frame that is too long")
    padding_bytes_max = PROBE_PADDING_BYTES_MAX if frame.kind == PROBE else 0
    if limits is LIVE_LIMITS and frame.kind != DATA and (frame.packet_bytes > 0 or frame.payload_bytes > padding_bytes_max):
        raise ProtocolError("a frame of kind %d that carries bytes" % frame.kind)
    return frame


def check_header(frame, data):
    """Header and packet header are there: checks CRC and flags."""
    frame.packet = bytes(data[HEADER_BYTES:HEADER_BYTES + frame.packet_bytes])
    if crc32c(frame.packet, crc32c(data[:36])) != frame.crc:
        raise ProtocolError("headerCrc is wrong")
    if frame.flags & ~(PLACED | PROMPT | PAYLOAD_CRC) or (frame.kind != DATA and frame.flags):
        raise ProtocolError("flags %d" % frame.flags)


def frame_bytes(kind, packet=b"", flags=0, number=0, count=0, alive_ms=0, received=0, payload=b""):
    crc = crc32c(payload) if flags & PAYLOAD_CRC else 0
    fields = (1, kind, flags, len(packet), MAGIC, len(payload), number, count & 0xFFFFFFFF, alive_ms & 0xFFFFFFFF, float(received), crc)
    head = HEADER.pack(*fields, 0)[:36]
    return head + struct.pack("<I", crc32c(packet, crc32c(head))) + packet + payload


# ---------------------------------------------------------------- handshake (section 4)


class Hello:
    def __init__(self, body):
        if len(body) < 90:
            raise ProtocolError("a short HELLO")
        self.version, self.rank, self.incarnation, self.rail, self.epoch = struct.unpack_from("<IIdII", body)
        self.job = body[56:88]
        (length,) = struct.unpack_from("<H", body, 88)
        if len(body) != 90 + length or length > 255:
            raise ProtocolError("a HELLO of a wrong length")
        self.key = body[90:].decode("utf-8", "replace")
        whole = self.incarnation == self.incarnation and abs(self.incarnation) < 2**53 and self.incarnation == int(self.incarnation)
        self.possible = self.epoch != 0 and whole


def job_digest(job_id):
    return hashlib.sha256(("multirail job " + job_id).encode()).digest()


def transcript_mac(secret, job_id, role, hello, challenge):
    key = secret if secret is not None else ("multirail job " + job_id).encode()
    text = ("multirail handshake %d %s\n" % (PROTOCOL_VERSION, role)).encode()
    return hmac.new(key, text + hello + challenge[:48], hashlib.sha256).digest()


def refuse_body(reason, text="", highest=0):
    encoded = text.encode()[:464]
    return struct.pack("<HHI", reason, len(encoded), highest) + encoded


# ---------------------------------------------------------------- packets (section 6)


class Packet:
    """Fields of a packet; which of them exist depends on the type."""


def u53(data, at):
    (value,) = struct.unpack_from("<Q", data, at)
    if value >= 2**53:
        raise ProtocolError("a number beyond 2^53")
    return value


def _rail_epochs(data, at, count, most):
    if count > most or at + 8 * count > len(data):
        raise ProtocolError("a list of %d rails" % count)
    return [(rail, epoch) for rail, _, epoch in struct.iter_unpack("<HHI", data[at:at + 8 * count])], at + 8 * count


def _window(data, at):
    if at + 8 > len(data):
        raise ProtocolError("a window that is cut off")
    _, key_bytes, _ = struct.unpack_from("<HHI", data, at)
    end = at + 8 + (key_bytes + 7) // 8 * 8
    if key_bytes > 64 or end > len(data):
        raise ProtocolError("a window's key is too long")
    return end


FIXED = {MATCH: 32, RNDV: 48, RGET: 56, ACK: 48, FRAG: 40, PUT: 48, FIN: 48, NOTIFY: 56, RESTARTACK: 72, RESTARTNACK: 56,
         RECVERRNOTIFY: 56, RAILDOWN: 24, CREDIT: 16}


def decode(data):
    if len(data) < 16:
        raise ProtocolError("a packet of %d bytes" % len(data))
    p = Packet()
    version, p.type, p.flags = struct.unpack_from("<BBH", data)
    if version != 1:
        raise ProtocolError("packet version %d" % version)
    if p.type not in FIXED or len(data) < FIXED[p.type]:
        raise ProtocolError("a packet of type %d and %d bytes" % (p.type, len(data)))
    p.credit_limit = u53(data, 8)
    end = FIXED[p.type]
    if p.type in (MATCH, RNDV, RGET):
        p.ctx, p.source, p.tag, p.seq = struct.unpack_from("<IIiI", data, 16)
        (p.signature,) = struct.unpack_from("<I", data, 4)
        if p.tag < 0:
            raise ProtocolError("a negative tag")
        if p.type != MATCH:
            p.message_bytes = u53(data, 32)
            p.sender = struct.unpack_from("<II", data, 40)
        if p.type == RGET:
            (count,) = struct.unpack_from("<I", data, 48)
            if count > WINDOWS_MAX:
                raise ProtocolError("%d windows" % count)
            for _ in range(count):
                end = _window(data, end)
    elif p.type == ACK:
        p.sender = struct.unpack_from("<II", data, 16)
        p.receiver = struct.unpack_from("<II", data, 24)
        (count,) = struct.unpack_from("<I", data, 40)
        p.take = u53(data, 32)
        _, end = _rail_epochs(data, end, count, WINDOWS_MAX)
    elif p.type == FRAG:
        p.receiver = struct.unpack_from("<II", data, 16)
        (p.epoch,) = struct.unpack_from("<I", data, 24)
        p.start = u53(data, 32)
    elif p.type in (PUT, FIN):
        target = struct.unpack_from("<II", data, 16)
        p.to_sender = p.type == PUT or bool(p.flags & TO_SENDER)
        p.sender = p.receiver = target
        (p.epoch,) = struct.unpack_from("<I", data, 24)
        p.start, p.end = u53(data, 32), u53(data, 40)
        if p.end < p.start:
            raise ProtocolError("a range that ends before it begins")
        if p.type == PUT:
            end = _window(data, end)
    elif p.type in (NOTIFY, RESTARTACK, RESTARTNACK, RECVERRNOTIFY):
        p.sender = struct.unpack_from("<II", data, 16)
        p.receiver = struct.unpack_from("<II", data, 24)
        p.epoch, p.ctx, p.source, p.seq, count, puts = struct.unpack_from("<IIIIII", data, 32)
        if p.type == NOTIFY:
            p.dead_rails, end = _rail_epochs(data, end, count, DEAD_RAILS_MAX)
        elif p.type == RESTARTACK:
            p.tail, p.take, p.missing, end = _ranges(data, end, count, puts)
    elif p.type == RAILDOWN:
        p.rail, _, p.epoch = struct.unpack_from("<HHI", data, 16)
    if end != len(data):
        raise ProtocolError("a packet of type %d and %d bytes, which must have %d" % (p.type, len(data), end))
    return p


def _ranges(data, end, count, puts):
    tail, take = u53(data, 56), u53(data, 64)
    if count > RANGES_MAX or end + 16 * count > len(data) or tail > take:
        raise ProtocolError("a RESTARTACK that cannot be")
    last, missing = 0, []
    for _ in range(count):
        first, after = u53(data, end), u53(data, end + 8)
        if first < last or after <= first or after > tail:
            raise ProtocolError("ranges that do not ascend")
        missing.append((first, after))
        last = after
        end += 16
    return tail, take, missing, _rail_epochs(data, end, puts, WINDOWS_MAX)[1]


def _head(kind, credit_limit, flags=0):
    return struct.pack("<BBHIQ", 1, kind, flags, 0, credit_limit)


def match(credit_limit, flags, ctx, source, tag, seq):
    return _head(MATCH, credit_limit, flags) + struct.pack("<IIiI", ctx, source, tag, seq)


def rndv(credit_limit, flags, ctx, source, tag, seq, message_bytes, sender):
    return _head(RNDV, credit_limit, flags) + struct.pack("<IIiIQII", ctx, source, tag, seq, message_bytes, *sender)


def frag(credit_limit, receiver, epoch, start):
    return _head(FRAG, credit_limit) + struct.pack("<IIIIQ", *receiver, epoch, 0, start)


def notify(credit_limit, sender, receiver, epoch, ctx, source, seq, dead_rails):
    body = _restart(NOTIFY, credit_limit, sender, receiver, epoch, ctx, source, seq, len(dead_rails))
    return body + b"".join(struct.pack("<HHI", rail, 0, dead) for rail, dead in dead_rails)


def ack(credit_limit, sender, receiver, take):
    return _head(ACK, credit_limit) + struct.pack("<IIIIQII", *sender, *receiver, take, 0, 0)


def _restart(kind, credit_limit, sender, receiver, epoch, ctx, source, seq, count):
    return _head(kind, credit_limit) + struct.pack("<IIIIIIIIII", *sender, *receiver, epoch, ctx, source, seq, count, 0)


def restart_ack(credit_limit, sender, receiver, epoch, ctx, source, seq, missing, tail, take):
    body = _restart(RESTARTACK, credit_limit, sender, receiver, epoch, ctx, source, seq, len(missing)) + struct.pack("<QQ", tail, take)
    return body + b"".join(struct.pack("<QQ", first, after) for first, after in missing)


def restart_nack(credit_limit, sender, receiver, epoch, ctx, source, seq):
    return _restart(RESTARTNACK, credit_limit, sender, receiver, epoch, ctx, source, seq, 0)


def rail_down(credit_limit, rail, epoch):
    return _head(RAILDOWN, credit_limit) + struct.pack("<HHI", rail, 0, epoch)


def credit(credit_limit):
    return _head(CREDIT, credit_limit)


# ------------------------------------------------------------------ signatures of collective calls

CALLS = ["", "barrier", "bcast", "reduce", "allreduce", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall",
         "alltoallv", "alltoallw", "reduceScatter", "reduceScatterBlock", "scan", "exscan", "bcastObject", "gatherObject",
         "allgatherObject", "scatterObject", "alltoallObject", "reduceObject", "allreduceObject", "dup", "split", "create",
         "createGroup", "free"]
CLASSES = ["", "Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array", "Float16Array",
           "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array"]
OPS = ["", "SUM", "PROD", "MAX", "MIN", "LAND", "LOR", "LXOR", "BAND", "BOR", "BXOR", "MAXLOC", "MINLOC", "user"]
WORD = 0xffffffff


def _mix(h, value):
    low = (h ^ (value & WORD)) * 0x9e3779b1 & WORD
    return (low ^ low >> 15 ^ value >> 32) * 0x85ebca6b & WORD


def signature(call, root=None, array_name="", length=0, op="", unit=1, commute=False, lengths=()):
    """What all ranks must say alike of a collective call; lengths are bytes."""
    if array_name == "Uint8Array" and op == "":
        array_name = ""
    extra = 2 * unit + (1 if commute else 0) if op == "user" else 0
    for each in lengths:
        extra = _mix(extra, each)
    h = _mix(_mix(_mix(0, 0 if root is None else root + 1), length), extra)
    return CALLS.index(call) << 27 | CLASSES.index(array_name) << 23 | OPS.index(op) << 19 | h >> 13
