"""The message layer of a receiver: matching (section 7), rendezvous (8, 9), credit (10), restart (11), the end (12)."""

from wire import (ACK, CHARGED, CREDIT, FIN, FRAG, MATCH, NOTIFY, PUT, RAILDOWN, RANGES_MAX, RECVERRNOTIFY, RESTARTACK, RESTARTNACK, RGET, VOID,
                  RNDV, ProtocolError, ahead)

ANY = -1
ENVELOPE_CHARGE = 128
SPAN = 2**30


class Ranges:
    """Sets of bytes as sorted ranges that do not touch."""

    def __init__(self):
        self.list = []

    def add(self, first, after):
        if first >= after:
            return
        kept = []
        for a, b in self.list:
            if b < first or a > after:
                kept.append((a, b))
            else:
                first, after = min(a, first), max(b, after)
        kept.append((first, after))
        self.list = sorted(kept)

    def touches(self, first, after):
        return any(a < after and first < b for a, b in self.list)

    def cut(self, first):
        self.list = [(a, min(b, first)) for a, b in self.list if a < first]

    def missing(self, take):
        out, at = [], 0
        for a, b in self.list:
            if a > at:
                out.append((at, a))
            at = b
        if at < take:
            out.append((at, take))
        return out


class Request:
    """A posted receive."""

    def __init__(self, source, ctx, tag, size):
        self.source, self.ctx, self.tag = source, ctx, tag
        self.buffer = bytearray(size)
        self.done = self.cancelled = False
        self.error = None
        self.matched_source = self.matched_tag = -1
        self.received = 0

    def fits(self, source, tag):
        return self.source in (ANY, source) and self.tag in (ANY, tag)

    def finish(self, received, message_bytes):
        self.received, self.done = received, True
        if message_bytes > len(self.buffer) and not self.error:
            self.error = "ERR_TRUNCATE"

    def fail(self, error):
        self.error, self.done = error, True


class Envelope:
    """A MATCH, RNDV or RGET that waits, for a lower number or for its receive."""

    def __init__(self, packet, payload):
        self.packet, self.payload = packet, bytes(payload)
        self.charge = len(payload) + ENVELOPE_CHARGE if packet.flags & CHARGED else 0
        self.message_bytes = len(payload) if packet.type == MATCH else packet.message_bytes


class Message:
    """A rendezvous from its match on: RECEIVING, OWING, then DONE (section 9). FENCING is left at once: there are no gets here."""

    def __init__(self, envelope, request):
        packet = envelope.packet
        self.sender, self.ctx, self.seq = packet.sender, packet.ctx, packet.seq
        self.request = request
        self.message_bytes = envelope.message_bytes
        # A message that its sender lost takes nothing.
        self.take = 0 if request.error else min(envelope.message_bytes, len(request.buffer))
        self.received = Ranges()
        self.epoch, self.restarted = 0, False
        self.state = "RECEIVING"
        self.answer_on_rail = self.answer_proved = False
        self.sinks = set()
        self.id = None


class Sink:
    """Where the payload of one FRAG goes; without a message: nowhere."""

    def __init__(self, message=None, start=0, end=0, void=False):
        self.message, self.start, self.end, self.void = message, start, end, void
        self.revoked = False


class Flow:
    """Numbers of one context, from the one peer that there is."""

    def __init__(self):
        self.expected, self.early = 0, {}


class Messages:
    def __init__(self, peer_rank, unexpected_bytes_max, fence):
        self.peer_rank = peer_rank
        self.unexpected_bytes_max = unexpected_bytes_max
        self.fence = fence
        self.released = 0
        self.flows, self.posted, self.unexpected, self.freed = {}, {}, {}, set()
        self.slots = []  # [generation, message or None]
        self.live = {}  # id -> message
        self.restart_nacks = {}  # sender's id -> [receiver's id, epoch, ctx, seq, on rail]
        self.said_bye = False
        self.failure = None

    @property
    def credit_limit(self):
        return self.released + self.unexpected_bytes_max

    def is_quiet(self):
        return not self.live and not self.restart_nacks

    # -------------------------------------------------------------- the application

    def post(self, request):
        waiting = self.unexpected.setdefault(request.ctx, [])
        for envelope in waiting:
            if request.fits(envelope.packet.source, envelope.packet.tag):
                waiting.remove(envelope)
                self.match(envelope, request)
                return
        if request.source == self.peer_rank and (self.failure or self.said_bye):
            request.fail(self.failure or "ERR_PROC_FAILED")
            return
        self.posted.setdefault(request.ctx, []).append(request)

    def cancel(self, request):
        if request not in self.posted.get(request.ctx, []):
            return False
        self.posted[request.ctx].remove(request)
        request.done = request.cancelled = True
        return True

    def probe(self, source, ctx, tag):
        pattern = Request(source, ctx, tag, 0)
        return next((e for e in self.unexpected.get(ctx, []) if pattern.fits(e.packet.source, e.packet.tag)), None)

    def free_context(self, ctx):
        self.freed.add(ctx)
        for envelope in self.unexpected.pop(ctx, []):
            self.release(envelope)

    # -------------------------------------------------------------- packets

    def on_packet(self, packet, payload, sink, sender):
        """A whole frame. Raises ProtocolError with nothing changed."""
        if (packet.type == FRAG) != (sink is not None):
            raise ProtocolError("PLACED does not fit the type")
        if len(payload) > 0 and packet.type not in (MATCH, RNDV, FRAG):
            raise ProtocolError("a payload where none belongs")
        if packet.type in (MATCH, RNDV, RGET):
            self.on_envelope(packet, payload)
        elif packet.type == FRAG:
            self.on_frag(sink, payload)
        elif packet.type == FIN and not packet.to_sender:
            self.on_fin(packet)
        elif packet.type == NOTIFY:
            self.on_notify(packet)
        elif packet.type == RAILDOWN:
            self.fence(packet.rail, packet.epoch)
        elif packet.type in (ACK, PUT, FIN, RESTARTACK, RESTARTNACK, RECVERRNOTIFY):
            sender.on_packet(packet)
        elif packet.type != CREDIT:
            raise ProtocolError("type %d" % packet.type)

    def on_envelope(self, packet, payload):
        if packet.source != self.peer_rank:
            raise ProtocolError("a message of another rank")
        if packet.type != MATCH and len(payload) > packet.message_bytes:
            raise ProtocolError("a first part that is longer than its message")
        flow = self.flows.setdefault(packet.ctx, Flow())
        distance = ahead(packet.seq, flow.expected)
        if distance < 0 or packet.seq in flow.early:
            return
        if distance > SPAN:
            raise ProtocolError("a number that is too far ahead")
        flow.early[packet.seq] = Envelope(packet, payload)
        while flow.expected in flow.early:
            envelope = flow.early.pop(flow.expected)
            flow.expected = (flow.expected + 1) & 0xFFFFFFFF
            self.deliver(envelope)

    def deliver(self, envelope):
        packet = envelope.packet
        if packet.ctx in self.freed:
            self.release(envelope)
            return
        for request in self.posted.get(packet.ctx, []):
            if request.fits(packet.source, packet.tag):
                self.posted[packet.ctx].remove(request)
                self.match(envelope, request)
                return
        self.unexpected.setdefault(packet.ctx, []).append(envelope)

    def release(self, envelope):
        self.released += envelope.charge
        envelope.charge = 0

    def match(self, envelope, request):
        packet, payload = envelope.packet, envelope.payload
        request.matched_source, request.matched_tag = packet.source, packet.tag
        self.release(envelope)
        if packet.type == MATCH:
            taken = min(len(payload), len(request.buffer))
            request.buffer[:taken] = payload[:taken]
            request.finish(taken, len(payload))
            return
        if self.failure or self.said_bye:
            request.fail(self.failure or "ERR_PROC_FAILED")
            return
        if packet.flags & VOID:
            request.error = "ERR_BUFFER"
        message = Message(envelope, request)
        self.issue_id(message)
        first = min(len(payload), message.take)
        request.buffer[:first] = payload[:first]
        message.received.add(0, first)
        self.check_complete(message)

    # -------------------------------------------------------------- ids (section 6)

    def issue_id(self, message):
        slot = next((i for i, (_, held) in enumerate(self.slots) if held is None), len(self.slots))
        if slot == len(self.slots):
            self.slots.append([0, None])
        self.slots[slot] = [self.slots[slot][0] + 1, message]
        message.id = (slot, self.slots[slot][0])
        self.live[message.id] = message

    def retire(self, message):
        message.state = "DONE"
        self.slots[message.id[0]][1] = None
        del self.live[message.id]

    def find(self, receiver):
        """The message of an id; None when it is retired."""
        slot, generation = receiver
        if slot >= len(self.slots) or generation == 0 or generation > self.slots[slot][0]:
            raise ProtocolError("an id that was never issued")
        return self.live.get(receiver)

    # -------------------------------------------------------------- fragments (section 8)

    def sink_for(self, packet, payload_bytes):
        if packet.type != FRAG:
            raise ProtocolError("a packet that must not be placed")
        message = self.find(packet.receiver)
        if message is None or message.state != "RECEIVING":
            return Sink()
        if ahead(packet.epoch, message.epoch) > 0:
            raise ProtocolError("a FRAG of a newer epoch")
        if packet.epoch != message.epoch:
            return Sink()
        start, end = packet.start, packet.start + payload_bytes
        if end > message.take:
            raise ProtocolError("a FRAG beyond what is taken")
        if message.received.touches(start, end) or any(s.start < end and start < s.end for s in message.sinks):
            return Sink()
        message.answer_proved = True
        sink = Sink(message, start, end, bool(packet.flags & VOID))
        message.sinks.add(sink)
        return sink

    def on_frag(self, sink, payload):
        message = sink.message
        if message is None or sink.revoked:
            return
        message.sinks.discard(sink)
        if sink.void:
            message.request.error = "ERR_BUFFER"
            message.received.add(0, message.take)
            self.check_complete(message)
            return
        message.request.buffer[sink.start:sink.end] = payload
        message.received.add(sink.start, sink.end)
        self.check_complete(message)

    def drop_sink(self, sink):
        if sink.message is not None:
            sink.message.sinks.discard(sink)

    def on_fin(self, packet):
        message = self.find(packet.receiver)
        if message is None or message.state != "RECEIVING" or ahead(packet.epoch, message.epoch) < 0:
            return
        if packet.epoch != message.epoch or packet.end > message.take:
            raise ProtocolError("a FIN that does not fit")
        # This side offers no windows on any rail.
        raise ProtocolError("a FIN for a window that was never offered")

    def check_complete(self, message):
        if message.received.missing(message.take):
            return
        self.revoke(message)
        message.request.finish(message.take, message.message_bytes)
        message.request = None
        if message.answer_proved:
            self.retire(message)
        else:
            message.state = "OWING"

    def revoke(self, message):
        for sink in message.sinks:
            sink.revoked = True
        message.sinks.clear()

    # -------------------------------------------------------------- restart (section 11)

    def on_notify(self, packet):
        message = self.find(packet.receiver)
        if message is None:
            self.owe_restart_nack(packet)
            return
        if message.sender != packet.sender:
            raise ProtocolError("a NOTIFY that names another sender")
        distance = ahead(packet.epoch, message.epoch)
        if distance < 0:
            return
        if message.state == "OWING":
            self.owe_restart_nack(packet)
            self.retire(message)
            return
        if distance == 0:
            message.answer_proved = False
            return
        for rail, epoch in packet.dead_rails:
            self.fence(rail, epoch)
        self.revoke(message)
        message.epoch, message.restarted = packet.epoch, True
        message.answer_on_rail = message.answer_proved = False
        missing = message.received.missing(message.take)
        if len(missing) > RANGES_MAX:
            message.received.cut(missing[RANGES_MAX][0])

    def answer_ranges(self, message):
        """What a RESTARTACK lacks: ranges, and from where on everything is missing."""
        missing = message.received.missing(message.take)
        if len(missing) > RANGES_MAX:
            return missing[:RANGES_MAX], missing[RANGES_MAX][0]
        return missing, message.take

    def owe_restart_nack(self, packet):
        owed = self.restart_nacks.get(packet.sender)
        if owed is None or ahead(packet.epoch, owed[1]) >= 0:
            self.restart_nacks[packet.sender] = [packet.receiver, packet.epoch, packet.ctx, packet.seq, False]

    # -------------------------------------------------------------- ends

    def fail(self, error):
        """The peer is gone for ever."""
        if self.failure:
            return
        self.failure = error
        for message in list(self.live.values()):
            self.revoke(message)
            if message.request is not None:
                message.request.fail(error)
            self.retire(message)
        self.end_posted(error)
        self.restart_nacks.clear()

    def peer_said_bye(self):
        self.said_bye = True
        self.restart_nacks.clear()
        for message in list(self.live.values()):
            if message.state == "OWING":
                self.retire(message)
        self.end_posted("ERR_PROC_FAILED")

    def end_posted(self, error):
        for queue in self.posted.values():
            for request in [one for one in queue if one.source == self.peer_rank]:
                queue.remove(request)
                request.fail(error)
