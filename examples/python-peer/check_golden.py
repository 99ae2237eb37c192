#!/usr/bin/env python3
"""Holds docs/internals/golden against this implementation: what it decodes, checks and computes must be what the vectors say."""

import hashlib
import hmac
import json
import pathlib
import struct

import oob
import wire

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "docs" / "internals" / "golden"
TYPES = {"MATCH": wire.MATCH, "RNDV": wire.RNDV, "RGET": wire.RGET, "ACK": wire.ACK, "FRAG": wire.FRAG, "PUT": wire.PUT, "FIN": wire.FIN,
         "RNDVRESTARTNOTIFY": wire.NOTIFY, "RNDVRESTARTACK": wire.RESTARTACK, "RNDVRESTARTNACK": wire.RESTARTNACK,
         "RECVERRNOTIFY": wire.RECVERRNOTIFY, "RAILDOWN": wire.RAILDOWN, "CREDIT": wire.CREDIT}
SAME_NAMES = {"flags": "flags", "ctx": "ctx", "source": "source", "tag": "tag", "seq": "seq", "epoch": "epoch", "creditLimit": "credit_limit",
              "messageBytes": "message_bytes", "rail": "rail", "signature": "signature"}
FRAME_FIELDS = {"flags": "flags", "frameNumber": "number", "deliveredCount": "count", "aliveMs": "alive_ms", "receivedBytes": "received",
                "payloadCrc": "payload_crc"}


def load(name):
    return json.loads((GOLDEN / name).read_text())


def check(wanted, found, what):
    assert wanted == found, "%s: %r, and not %r" % (what, found, wanted)


def frame_of(data, limits):
    frame = wire.check_lengths(data, limits)
    wire.check_header(frame, data)
    return frame


def packets():
    golden = load("packets.json")["packets"]
    for vector in golden:
        fields, packet = vector["fields"], wire.decode(bytes.fromhex(vector["hex"]))
        check(TYPES[fields["type"]], packet.type, vector["name"])
        for name, attribute in SAME_NAMES.items():
            if name in fields and hasattr(packet, attribute):
                check(fields[name], getattr(packet, attribute), "%s: %s" % (vector["name"], name))
        for side in ("sender", "receiver"):
            if side + "Slot" in fields and hasattr(packet, side):
                check((fields[side + "Slot"], fields[side + "Generation"]), getattr(packet, side), "%s: %s" % (vector["name"], side))
    return len(golden)


def signatures():
    golden = load("signatures.json")["signatures"]
    for vector in golden:
        fields = {{"arrayName": "array_name", "bytes": "length"}.get(name, name): value for name, value in vector["fields"].items()}
        check(vector["code"], wire.signature(vector["call"], **fields), "signature of " + vector["call"])
    return len(golden)


def frames():
    golden = load("frames.json")["frames"]
    for vector in golden:
        data = bytes.fromhex(vector["hex"])
        frame = frame_of(data, wire.LIVE_LIMITS)
        check(vector["packetHeader"], frame.packet.hex(), vector["name"])
        for name, attribute in FRAME_FIELDS.items():
            check(vector["fields"][name], getattr(frame, attribute), "%s: %s" % (vector["name"], name))
        if frame.flags & wire.PAYLOAD_CRC:
            check(wire.crc32c(bytes.fromhex(vector["payload"])), frame.payload_crc, vector["name"] + ": payloadCrc")
    return len(golden)


def handshake():
    golden = load("handshake.json")
    secret, job_id, dialer = bytes.fromhex(golden["secret"]), golden["jobId"], golden["dialer"]
    body = {vector["name"].split()[0]: frame_of(bytes.fromhex(vector["hex"]), wire.HANDSHAKE_LIMITS).packet for vector in golden["frames"]}
    hello = wire.Hello(body["HELLO"])
    check((dialer["rank"], dialer["rail"], dialer["epoch"], dialer["key"]), (hello.rank, hello.rail, hello.epoch, hello.key), "HELLO")
    check((dialer["incarnation"], wire.job_digest(job_id)), (int(hello.incarnation), hello.job), "HELLO: job and incarnation")
    challenge = body["CHALLENGE"]
    check(wire.transcript_mac(secret, job_id, "acceptor", body["HELLO"], challenge), challenge[48:], "CHALLENGE: MAC")
    check(wire.transcript_mac(secret, job_id, "dialer", body["HELLO"], challenge), body["PROOF"], "PROOF")
    check(b"", body["WELCOME"], "WELCOME")
    refuse = next(vector for vector in golden["frames"] if "reason" in vector)
    check(wire.refuse_body(wire.STALE_EPOCH, refuse["text"], refuse["highestEpoch"]), body["REFUSE"], "REFUSE")
    # Section 4: the key of the epoch, and what it proves on a liveness connection.
    epoch_key = wire.transcript_mac(secret, job_id, "epoch", body["HELLO"], challenge)
    check(golden["epochKey"], epoch_key.hex(), "epochKey")
    claim = struct.pack("<IIIIII", wire.PROTOCOL_VERSION, dialer["rank"], dialer["rail"], dialer["epoch"], golden["liveness"]["number"], 0)
    check(claim + hmac.new(epoch_key, b"multirail liveness\n" + claim, hashlib.sha256).digest(), body["LIVENESS"], "LIVENESS")
    return len(golden["frames"])


def out_of_band():
    golden = load("oob.json")
    secret, nonce, claims = bytes.fromhex(golden["secret"]), bytes.fromhex(golden["challengeNonce"]), golden["claims"]
    hello = {"job_id": claims["jobId"], "host_id": claims["hostId"], "nonce": bytes.fromhex(golden["helloNonce"]),
             **{name: claims[name] for name in ("version", "rank", "size", "incarnation", "pid", "received", "lifeline")}}
    hello["proof"] = oob.proof_of_rank(secret, nonce, hello)
    check(golden["helloProof"], hello["proof"].hex(), "Hello.proof")
    check(golden["welcomeProof"], oob.proof_of_launcher(secret, nonce, hello, golden["welcomeReceived"]).hex(), "Welcome.proof")
    check(golden["hello"], oob.encode_envelope(0, 0, "hello", hello).hex(), "Hello")
    check(golden["ping"], oob.encode_envelope(0, 5, "ping", {}).hex(), "Ping")
    check((0, 0, "hello", hello), oob.decode_envelope(bytes.fromhex(golden["hello"])), "Hello, read")
    check((0, 5, "ping", {}), oob.decode_envelope(bytes.fromhex(golden["ping"])), "Ping, read")
    return 4


check(0xE3069283, wire.crc32c(b"123456789"), "CRC32C")
print("%d golden vectors hold" % (packets() + signatures() + frames() + handshake() + out_of_band() + 1))
