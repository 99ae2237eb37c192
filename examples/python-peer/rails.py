"""Rails of one peer: handshakes (section 4), counting and probes (3), losses (11), BYE (12). This side is dialled."""

import asyncio
import hmac
import os
import struct
from collections import deque

import wire
from messages import Messages
from sending import Sender
from wire import ProtocolError

HANDSHAKE_MS = 3000
PARTIAL_REPORT_MS = 50
PROBE_IDLE_MS = 1000
REFUSALS_MAX = 16
PROBES_KEPT_MAX = 16
BYE_GRACE_MS = 5000
EPOCHS_AHEAD_MAX = 1000
HELLO_EPOCHS_AHEAD_MAX = 2**20


class Rail:
    def __init__(self, index, key):
        self.index, self.key = index, key
        self.state, self.epoch, self.link = "DOWN", 0, None
        self.highest_seen = self.highest_dead = 0
        self.last_reason = None


class Link(asyncio.Protocol):
    """One connection: a handshake, and then a live epoch of a rail."""

    def __init__(self, job):
        self.job = job
        self.buffer = bytearray()
        self.stage = "HELLO"
        self.rail = None
        self.began_ms = job.alive_ms
        self.over = False

    def connection_made(self, transport):
        self.transport = transport
        self.job.connections.add(self)

    def connection_lost(self, _error):
        self.job.connections.discard(self)
        self.end("closed")

    def data_received(self, data):
        if self.over:
            return
        self.buffer += data
        if self.stage == "LIVE":
            self.received += len(data)
        if self.job.peer_rank is not None:
            self.take()
        elif len(self.buffer) > wire.HEADER_BYTES + wire.HANDSHAKE_LIMITS[0]:
            self.close()

    def take(self):
        """Looks at what has come. Who dials before this side has its peer's entry waits for that."""
        try:
            self.take_frames()
        except ProtocolError as error:
            if self.stage != "LIVE" and isinstance(error, wire.OtherVersion):
                self.refuse(wire.BAD_VERSION, str(error))
            else:
                self.end("damaged")
        self.job.pump()

    def take_frames(self):
        while not self.over:
            limits = wire.LIVE_LIMITS if self.stage == "LIVE" else wire.HANDSHAKE_LIMITS
            if len(self.buffer) < wire.HEADER_BYTES:
                return
            if self.stage != "LIVE" or self.frame is None:
                frame = wire.check_lengths(self.buffer, limits)
                if len(self.buffer) < wire.HEADER_BYTES + frame.packet_bytes:
                    return
                wire.check_header(frame, self.buffer)
                if self.stage != "LIVE":
                    del self.buffer[:wire.HEADER_BYTES + frame.packet_bytes]
                    self.on_handshake(frame)
                    continue
                self.begin_frame(frame)
            end = wire.HEADER_BYTES + self.frame.packet_bytes + self.frame.payload_bytes
            if self.over or len(self.buffer) < end:
                return
            payload = bytes(self.buffer[end - self.frame.payload_bytes:end])
            del self.buffer[:end]
            self.on_frame(payload)

    # -------------------------------------------------------------- handshake

    def on_handshake(self, frame):
        if self.stage == "HELLO" and frame.kind == wire.HELLO:
            self.on_hello(frame.packet)
        elif self.stage == "CHALLENGED" and frame.kind == wire.PROOF:
            right = wire.transcript_mac(self.job.secret, self.job.job_id, "dialer", self.hello_body, self.challenge)
            if not hmac.compare_digest(right, frame.packet) or not self.hello.possible or self.buffer:
                self.close()
                return
            self.job.admit(self, self.hello)
        else:
            self.close()

    def on_hello(self, body):
        if len(body) < 4:
            self.close()
            return
        (version,) = struct.unpack_from("<I", body)
        if version != wire.PROTOCOL_VERSION:
            self.refuse(wire.BAD_VERSION, "version %d" % version)
            return
        self.hello_body, self.hello = body, wire.Hello(body)
        if self.hello.job != wire.job_digest(self.job.job_id):
            self.refuse(wire.BAD_JOB, "another job")
            return
        head = struct.pack("<IId", self.job.rank, 0, float(self.job.incarnation)) + os.urandom(32)
        self.challenge = head + wire.transcript_mac(self.job.secret, self.job.job_id, "acceptor", body, head)
        self.transport.write(wire.frame_bytes(wire.CHALLENGE, self.challenge))
        self.stage = "CHALLENGED"

    def refuse(self, reason, text="", highest=0):
        self.transport.write(wire.frame_bytes(wire.REFUSE, wire.refuse_body(reason, text, highest)))
        self.close()

    def close(self):
        self.over = True
        self.transport.close()

    # -------------------------------------------------------------- a live epoch

    def go_live(self, rail, epoch):
        self.rail, self.epoch, self.stage = rail, epoch, "LIVE"
        self.frame, self.sink = None, None
        self.received = self.reported = 0
        self.reported_at_ms = self.job.alive_ms
        self.delivered = self.told = 0
        self.sent = self.confirmed = self.outstanding_bytes = 0
        self.outstanding = deque()  # of [use, bytes, refused]
        self.answers = []
        self.refusals = deque()
        self.bye_sent = self.bye_received = self.bye_counted = False
        self.transport.write(wire.frame_bytes(wire.WELCOME))
        self.probe()

    def probe(self):
        self.probed_at_ms = self.job.alive_ms
        self.probe_id = self.job.next_probe_id()
        self.write(wire.PROBE, number=self.probe_id)

    def write(self, kind, packet=b"", number=0, payload=b"", flags=0):
        alive = int(self.job.alive_ms)
        self.transport.write(wire.frame_bytes(kind, packet, flags, number, self.delivered, alive, self.received, payload))
        self.told, self.reported, self.reported_at_ms = self.delivered, self.received, self.job.alive_ms

    def send(self, packet, use, payload=b"", flags=0):
        """A counted frame. `use` is called with True when it is delivered, with False when it is in doubt, with None when it was refused."""
        self.sent = (self.sent + 1) & 0xFFFFFFFF
        size = len(packet or b"") + len(payload)
        self.outstanding.append([use, size, False])
        self.outstanding_bytes += size
        if packet is None:
            self.write(wire.BYE, b"", self.sent)
            return
        # The count of what has a payload comes soon enough by itself.
        flags |= (wire.PAYLOAD_CRC if self.job.payload_crc else 0) if payload else wire.PROMPT
        self.write(wire.DATA, packet, self.sent, payload, flags)

    def has_room(self, size, window):
        return not self.outstanding or self.outstanding_bytes + size <= window

    def begin_frame(self, frame):
        self.frame, self.sink = frame, None
        if frame.flags & wire.PLACED:
            if frame.kind != wire.DATA or self.bye_received:
                raise ProtocolError("placed, and no DATA")
            self.sink = self.job.messages.sink_for(wire.decode(frame.packet), frame.payload_bytes)

    def on_frame(self, payload):
        frame, sink = self.frame, self.sink
        self.frame = None
        if frame.kind == wire.NACK_FRAME:
            self.take_nack(frame.number)
        self.on_count(frame.count)
        if frame.kind == wire.DATA:
            self.check_number(frame)
            self.on_data(frame, sink, payload)
        elif frame.kind == wire.BYE:
            self.check_number(frame)
            self.bye_received = True
            self.delivered = frame.number
            self.job.on_bye()
        elif frame.kind == wire.PROBE:
            self.answers.append(frame.number)
            del self.answers[:-PROBES_KEPT_MAX]
        elif frame.kind == wire.PROBE_ANSWER:
            if frame.number == self.probe_id and self.rail.state == "PROBING":
                self.job.rail_up(self.rail)
        elif frame.kind not in (wire.COUNT, wire.NACK_FRAME):
            raise ProtocolError("kind %d on a live rail" % frame.kind)

    def check_number(self, frame):
        if frame.number != (self.delivered + 1) & 0xFFFFFFFF or self.bye_received:
            raise ProtocolError("frame number %d" % frame.number)

    def take_nack(self, number):
        place = wire.ahead(number, self.confirmed)
        if not 1 <= place <= len(self.outstanding) or self.outstanding[place - 1][0] == self.on_bye_completed:
            raise ProtocolError("NACK of a frame that is not outstanding")
        self.outstanding[place - 1][2] = True

    def on_count(self, count):
        news = wire.ahead(count, self.confirmed)
        if not 0 <= news <= len(self.outstanding):
            raise ProtocolError("count %d" % count)
        for _ in range(news):
            self.confirmed = (self.confirmed + 1) & 0xFFFFFFFF
            use, size, refused = self.outstanding.popleft()
            self.outstanding_bytes -= size
            use(None if refused else True)

    def on_data(self, frame, sink, payload):
        if frame.flags & wire.PAYLOAD_CRC and wire.crc32c(payload) != frame.payload_crc:
            if sink is not None:
                self.job.messages.drop_sink(sink)
            self.write(wire.NACK_FRAME, number=frame.number)
            self.delivered = frame.number
            now = self.job.alive_ms
            self.refusals.append(now)
            while self.refusals[0] < now - 1000:
                self.refusals.popleft()
            if len(self.refusals) > REFUSALS_MAX:
                self.end("refusals")
            return
        packet = wire.decode(frame.packet)
        self.job.messages.on_packet(packet, payload, sink, self.job.sender)
        self.job.sender.on_credit(packet.credit_limit)
        if not self.over:
            self.delivered = frame.number

    # -------------------------------------------------------------- what is said, and the end

    def report(self):
        """Answers to probes, and the count where nothing carried it."""
        for number in self.answers:
            self.write(wire.PROBE_ANSWER, number=number)
        self.answers = []
        if self.told != self.delivered:
            self.write(wire.COUNT)
        if self.bye_sent and self.bye_received and self.bye_counted:
            self.end(None)

    def tick(self):
        now = self.job.alive_ms
        if self.stage != "LIVE":
            if now - self.began_ms >= HANDSHAKE_MS:
                self.close()
            return
        if self.buffer and self.received != self.reported and now - self.reported_at_ms >= PARTIAL_REPORT_MS:
            self.write(wire.COUNT)
        if now - self.probed_at_ms >= PROBE_IDLE_MS:
            self.probe()

    def say_bye(self):
        self.bye_sent = True
        self.send(None, self.on_bye_completed)

    def on_bye_completed(self, delivered):
        if delivered:
            self.bye_counted = True
            self.job.bye_counted = True

    def end(self, reason):
        """The epoch is over: in doubt is what was not counted. No reason: it ended after BYE both ways."""
        if self.stage != "LIVE" or self.rail.link is not self:
            self.over = True
            self.transport.close()
            return
        self.over = True
        if reason is None:
            self.transport.close()
        else:
            self.transport.abort()
        if reason == "closed" and self.bye_received and self.bye_counted:
            reason = None
        rail, self.rail.link = self.rail, None
        rail.epoch, rail.state = 0, "DOWN"
        rail.highest_dead = max(rail.highest_dead, self.epoch)
        if reason is not None:
            rail.last_reason = reason
            self.job.rail_lost(rail, self.epoch)
        if self.frame is not None and self.sink is not None:
            self.job.messages.drop_sink(self.sink)
        while self.outstanding:
            use, _, refused = self.outstanding.popleft()
            use(None if refused and reason is None else reason is None)


class Job:
    """This rank, the one that dials it, and the rails between them."""

    def __init__(self, start):
        self.rank, self.incarnation = start["rank"], start["incarnation"]
        self.job_id, self.host_id = start["jobId"], start["hostId"]
        self.secret = None if start["secret"] is None else bytes.fromhex(start["secret"])
        self.links, self.peer_timeout_ms, self.payload_crc = start["links"], start["peerTimeoutMs"], start["payloadCrc"]
        self.start = start
        self.peer_rank = self.peer_incarnation = self.sender = None
        self.rails = []
        self.connections = set()
        self.messages = Messages(None, start["unexpectedBytesMax"], self.fence)
        self.alive_ms = 0.0
        self.unreachable_since_ms = 0.0
        self.credit_told = self.credit_telling = start["unexpectedBytesMax"]
        self.rail_downs = {}  # rail -> [epoch, on rail]
        self.probe_ids = 0
        self.leaving = self.bye_counted = self.has_left = False
        self.last_bye_ms = 0.0
        self.server = self.ticker = None

    async def open(self):
        """Listens; the modex entry of this side."""
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(lambda: Link(self), "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        self.ticker = asyncio.ensure_future(self.tick())
        address = {"address": "127.0.0.1", "family": 4, "prefix": 8, "port": port, "linkLocal": False}
        self.own = {"name": "lo", "loopback": True, "standby": False, "addresses": [address]}
        return {"version": 1, "incarnation": self.incarnation, "hostId": self.host_id, "excluded": {},
                "unexpectedBytesMax": self.messages.unexpected_bytes_max,
                "btl": {"tcp": {"interfaces": [self.own], "links": self.links, "incarnation": self.incarnation}}}

    def meet(self, rank, entry):
        """The peer's modex entry is there: the rails follow from both (section 2), and whoever dialled meanwhile is looked at."""
        theirs = entry["btl"]["tcp"]
        # One host: two loopback interfaces of one name, else two with a common address family.
        possible = [one for one in theirs["interfaces"] if any(a["family"] == 4 for a in one["addresses"])]
        lower = next((one for one in possible if one["loopback"] and one["name"] == self.own["name"]), possible[0])
        for link in range(min(self.links, theirs["links"])):
            self.rails.append(Rail(link, "tcp:%s-%s#%d" % (lower["name"], self.own["name"], link)))
        self.peer_rank = self.messages.peer_rank = rank
        self.peer_incarnation = entry["incarnation"]
        self.sender = Sender(self.rank, self.start, entry["unexpectedBytesMax"])
        self.unreachable_since_ms = self.alive_ms
        for link in list(self.connections):
            link.take()

    async def close(self):
        self.ticker.cancel()
        self.server.close()
        for link in list(self.connections):
            link.over = True
            link.transport.abort()

    def next_probe_id(self):
        self.probe_ids += 1
        return self.probe_ids

    async def tick(self):
        """The clock: alive time, of which one turn adds 50 ms at most (section 13)."""
        loop = asyncio.get_running_loop()
        last = loop.time()
        while True:
            await asyncio.sleep(0.01)
            now = loop.time()
            self.alive_ms += min(50.0, (now - last) * 1000)
            last = now
            for link in list(self.connections):
                if not link.over:
                    link.tick()
            if self.peer_rank is None:
                continue
            if any(rail.state == "UP" for rail in self.rails):
                self.unreachable_since_ms = self.alive_ms
            elif self.alive_ms - self.unreachable_since_ms >= self.peer_timeout_ms and not self.messages.said_bye:
                self.fail_peer("ERR_PROC_UNREACHABLE")
            self.pump()

    # -------------------------------------------------------------- rails

    def admit(self, link, hello):
        """Section 4, in this order."""
        if hello.rank == self.rank:
            return link.refuse(wire.RAIL_MISMATCH, "the lower rank dials")
        if hello.rank != self.peer_rank:
            return link.refuse(wire.UNKNOWN_RANK, "rank %d is not in this job" % hello.rank)
        if self.messages.failure:
            return link.refuse(wire.PEER_FAILED, "declared failed")
        if hello.incarnation < self.peer_incarnation:
            return link.refuse(wire.OLD_INCARNATION, "there is a newer process")
        if hello.incarnation > self.peer_incarnation:
            self.fail_peer("ERR_PROC_FAILED")
            return link.refuse(wire.PEER_FAILED, "replaced by a newer process")
        if hello.rail >= len(self.rails) or self.rails[hello.rail].key != hello.key:
            return link.refuse(wire.RAIL_MISMATCH, "rail %d is not %s" % (hello.rail, hello.key))
        if self.has_left:
            return link.refuse(wire.FINALIZED, "left")
        rail = self.rails[hello.rail]
        if hello.epoch <= max(rail.highest_dead, rail.epoch):
            return link.refuse(wire.STALE_EPOCH, "stale", max(rail.highest_seen, rail.highest_dead, rail.epoch))
        if hello.epoch > max(rail.highest_seen, rail.highest_dead) + HELLO_EPOCHS_AHEAD_MAX:
            return link.refuse(wire.STALE_EPOCH, "too far above", max(rail.highest_seen, rail.highest_dead))
        if rail.link is not None:
            rail.link.end("replaced")
        rail.link, rail.epoch, rail.state = link, hello.epoch, "PROBING"
        rail.highest_seen = max(rail.highest_seen, hello.epoch)
        rail.highest_dead = max(rail.highest_dead, hello.epoch - 1)
        link.go_live(rail, hello.epoch)

    def rail_up(self, rail):
        rail.state = "UP"
        owed = self.rail_downs.get(rail.index)
        if owed is not None and owed[0] < rail.epoch:
            del self.rail_downs[rail.index]
        for other in self.rails:
            if 0 < other.highest_dead and other.epoch <= other.highest_dead and other.index not in self.rail_downs:
                self.rail_downs[other.index] = [other.highest_dead, False]
        if self.leaving:
            self.say_bye(rail.link)

    def rail_lost(self, rail, epoch):
        owed = self.rail_downs.get(rail.index)
        if owed is None or owed[0] < epoch:
            self.rail_downs[rail.index] = [epoch, False]

    def fence(self, index, epoch):
        if index >= len(self.rails):
            return
        rail = self.rails[index]
        epoch = min(epoch, rail.highest_seen + EPOCHS_AHEAD_MAX)
        rail.highest_seen, rail.highest_dead = max(rail.highest_seen, epoch), max(rail.highest_dead, epoch)
        if rail.link is not None and rail.epoch <= epoch:
            rail.link.end("fenced")

    def fail_peer(self, error):
        self.messages.fail(error)
        self.sender.fail(error)
        for rail in self.rails:
            self.fence(rail.index, rail.highest_seen)

    # -------------------------------------------------------------- what is owed

    def carrying(self):
        return next((rail.link for rail in self.rails if rail.state == "UP"), None)

    def roomy(self, size, window):
        """A rail that has room for a range; the one with least on it."""
        links = [rail.link for rail in self.rails if rail.state == "UP" and rail.link.has_room(size, window)]
        return min(links, key=lambda link: link.outstanding_bytes, default=None)

    def pump(self):
        """Looks at the state and says what must be said; nothing is repeated because of a loss as such (sections 9 and 11)."""
        if self.leaving:
            self.see_left()
        elif self.carrying() is not None and not self.messages.failure:
            self.pump_owed()
        for rail in self.rails:
            if rail.link is not None:
                rail.link.report()

    def send(self, make, completed, payload=b"", link=None, flags=0):
        """Gives a packet to this rail, or to the first one that carries; it states the newest credit limit."""
        limit = self.messages.credit_limit
        self.credit_telling = max(self.credit_telling, limit)

        def use(delivered):
            if delivered:
                self.credit_told = max(self.credit_told, limit)
            else:
                self.credit_telling = self.credit_told
            completed(delivered)

        (link or self.carrying()).send(make(limit), use, payload, flags)

    def pump_owed(self):
        messages = self.messages
        for rail, owed in list(self.rail_downs.items()):
            if not owed[1]:
                owed[1] = True
                self.send(lambda limit: wire.rail_down(limit, rail, owed[0]), lambda ok, o=owed, r=rail: self.on_rail_down(r, o, ok))
        for sender, owed in list(messages.restart_nacks.items()):
            if not owed[4]:
                owed[4] = True
                self.send(lambda limit: wire.restart_nack(limit, sender, owed[0], owed[1], owed[2], self.rank, owed[3]),
                          lambda ok, o=owed, s=sender: self.on_restart_nack(s, o, ok))
        if messages.credit_limit - self.credit_telling >= messages.unexpected_bytes_max / 4:
            self.send(wire.credit, lambda ok: None)
        for message in list(messages.live.values()):
            if not message.answer_on_rail and not message.answer_proved:
                self.answer(message)
        self.sender.pump(self)

    def answer(self, message):
        message.answer_on_rail = True
        epoch = message.epoch

        def make(limit):
            if not message.restarted:
                return wire.ack(limit, message.sender, message.id, message.take)
            missing, tail = self.messages.answer_ranges(message)
            return wire.restart_ack(limit, message.sender, message.id, epoch, message.ctx, self.rank, message.seq, missing, tail, message.take)

        def completed(delivered):
            if message.epoch != epoch or message.state == "DONE":
                return
            message.answer_on_rail = False
            if delivered:
                message.answer_proved = True
                if message.state == "OWING":
                    self.messages.retire(message)

        self.send(make, completed)

    def on_rail_down(self, rail, owed, delivered):
        owed[1] = False
        if delivered and self.rail_downs.get(rail) is owed:
            del self.rail_downs[rail]

    def on_restart_nack(self, sender, owed, delivered):
        owed[4] = False
        if delivered and self.messages.restart_nacks.get(sender) is owed:
            del self.messages.restart_nacks[sender]

    # -------------------------------------------------------------- the end of the job (section 12)

    def finalize(self):
        self.leaving = True
        self.bye_said = False
        self.pump()

    def on_bye(self):
        self.messages.peer_said_bye()
        self.sender.peer_said_bye()
        self.rail_downs.clear()

    def say_bye(self, link):
        if self.bye_said and not link.bye_sent:
            self.last_bye_ms = self.alive_ms
            link.say_bye()

    def see_left(self):
        if not self.bye_said:
            if self.carrying() is not None and not self.messages.failure:
                self.pump_owed()
            if not self.messages.is_quiet() or not self.sender.is_quiet:
                return
            self.bye_said = True
            self.last_bye_ms = self.alive_ms
            for rail in self.rails:
                if rail.state == "UP":
                    self.say_bye(rail.link)
        grace = self.alive_ms - self.last_bye_ms > BYE_GRACE_MS
        if self.messages.failure or (self.messages.said_bye and (self.bye_counted or grace)):
            self.has_left = True
