"""The sender's half (sections 8 to 11): eager and rendezvous sends, byte credit, and the restart after a loss."""

from wire import (ACK, CHARGED, CONTIG, FIN, PUT, RANGES_MAX, RECVERRNOTIFY, RESTARTACK, RESTARTNACK, SYNC, ProtocolError, ahead)
import wire

ENVELOPE_CHARGE = 128
DEAD_RAILS_MAX = wire.DEAD_RAILS_MAX
# A send's own affair (section 3): how much may be outstanding on one rail.
WINDOW_BYTES = 4 * 1024 * 1024


class Send:
    """One send, and its state (section 9): ENVELOPE, STREAMING, NOTIFYING, DONE. DRAINING is left at once: there are no puts here."""

    def __init__(self, ctx, tag, data, sync=False):
        self.ctx, self.tag, self.data, self.sync = ctx, tag, data, sync
        self.state = "ENVELOPE"
        self.seq = self.id = self.receiver = None
        self.eager = self.charged = False
        self.first_part = 0
        self.epoch = 0
        self.on_rail = False  # the envelope, or NOTIFY
        self.told = False  # it was delivered
        self.pieces = []  # ranges to send, ascending
        self.flying = 0  # FRAGs of this epoch that are not delivered
        self.take = 0
        self.done, self.error = False, None


class Sender:
    def __init__(self, rank, limits, credit_limit):
        self.rank = rank
        self.eager_limit, self.inline, self.frag = limits["eagerLimitBytes"], limits["rndvInlineBytes"], limits["fragBytes"]
        self.retained_max, self.retained = limits["retainedBytesMax"], 0
        self.credit_limit, self.credit_used = credit_limit, 0
        self.seqs, self.queue, self.generations = {}, [], []
        self.live = {}  # id -> send
        self.failure = None
        self.said_bye = False

    @property
    def is_quiet(self):
        return not self.queue

    def post(self, send):
        if self.failure or self.said_bye:
            send.done, send.error = True, self.failure or "ERR_PROC_FAILED"
            return
        send.seq = self.seqs.get(send.ctx, 0)
        self.seqs[send.ctx] = (send.seq + 1) & 0xFFFFFFFF
        size = len(send.data)
        fits = self.credit_used + size + ENVELOPE_CHARGE <= self.credit_limit
        send.eager = size <= self.eager_limit and not send.sync and fits and self.retained + size <= self.retained_max
        if send.eager:
            send.first_part, send.charged, send.done = size, True, True
            self.retained += size
        else:
            # All of a short synchronous one; else a first part, of what credit there is.
            part = size if send.sync and size <= self.eager_limit else min(size, self.inline)
            send.charged = self.credit_used + part + ENVELOPE_CHARGE <= self.credit_limit
            send.first_part = part if send.charged else 0
            self.issue_id(send)
        if send.charged:
            self.credit_used += send.first_part + ENVELOPE_CHARGE
        self.queue.append(send)

    def issue_id(self, send):
        used = {slot for slot, _ in self.live}
        slot = next((i for i in range(len(self.generations)) if i not in used), len(self.generations))
        if slot == len(self.generations):
            self.generations.append(0)
        self.generations[slot] += 1
        send.id = (slot, self.generations[slot])
        self.live[send.id] = send

    def find(self, sender):
        """The send of an id; None when it is retired."""
        slot, generation = sender
        if slot >= len(self.generations) or generation == 0 or generation > self.generations[slot]:
            raise ProtocolError("an id that was never issued")
        return self.live.get(sender)

    def finish(self, send, error=None):
        if send.state == "DONE":
            return
        send.state = "DONE"
        if not send.done:
            send.done, send.error = True, error
        if send.eager:
            self.retained -= len(send.data)
        if send.id is not None:
            del self.live[send.id]
        send.data = b""
        self.queue.remove(send)

    # -------------------------------------------------------------- what came

    def on_credit(self, limit):
        self.credit_limit = max(self.credit_limit, limit)

    def on_packet(self, packet):
        send = self.find(packet.sender)
        if send is None:
            return
        if packet.type == ACK:
            self.on_ack(send, packet)
        elif packet.type == RESTARTACK:
            if send.state == "NOTIFYING" and packet.epoch == send.epoch:
                if packet.take > len(send.data):
                    raise ProtocolError("a RESTARTACK that takes more than there is")
                send.receiver, send.take = packet.receiver, packet.take
                send.pieces = packet.missing + ([(packet.tail, packet.take)] if packet.tail < packet.take else [])
                self.stream(send)
        elif packet.type == RESTARTNACK:
            if send.state == "NOTIFYING":
                self.finish(send)
        # PUT is of windows that this side cannot put over; FIN and RECVERRNOTIFY are of RGET, which it does not send.

    def on_ack(self, send, packet):
        if packet.take > len(send.data):
            raise ProtocolError("an ACK that takes more than there is")
        if send.state != "ENVELOPE":
            return
        send.receiver, send.take = packet.receiver, packet.take
        send.pieces = [(send.first_part, send.take)] if send.first_part < send.take else []
        self.stream(send)

    def stream(self, send):
        send.state, send.flying = "STREAMING", 0
        self.check_done(send)

    def check_done(self, send):
        if send.state == "STREAMING" and not send.pieces and send.flying == 0:
            self.finish(send)

    # -------------------------------------------------------------- what is to be sent (section 9)

    def pump(self, job):
        for send in list(self.queue):
            if send.state == "ENVELOPE" and not send.on_rail and not send.told:
                self.send_envelope(job, send)
            elif send.state == "NOTIFYING" and not send.on_rail and not send.told:
                self.send_notify(job, send)
        for send in list(self.queue):
            while send.state == "STREAMING" and send.pieces:
                link = job.roomy(min(self.frag, send.pieces[0][1] - send.pieces[0][0]), WINDOW_BYTES)
                if link is None:
                    return
                self.send_frag(job, link, send)

    def send_envelope(self, job, send):
        send.on_rail = True
        flags = (CHARGED if send.charged else 0) | (SYNC if send.sync else 0) | CONTIG
        size = len(send.data)

        def make(limit):
            if send.eager:
                return wire.match(limit, flags, send.ctx, self.rank, send.tag, send.seq)
            return wire.rndv(limit, flags, send.ctx, self.rank, send.tag, send.seq, size, send.id)

        def completed(outcome):
            send.on_rail = False
            if send.state == "ENVELOPE" and outcome is True:
                send.told = True
                if send.eager:
                    self.finish(send)

        job.send(make, completed, send.data[:send.first_part])

    def send_frag(self, job, link, send):
        first, after = send.pieces[0]
        cut = min(after, first - first % self.frag + self.frag)
        send.pieces[0:1] = [(cut, after)] if cut < after else []
        send.flying += 1
        epoch = send.epoch

        def completed(outcome):
            if send.state != "STREAMING" or send.epoch != epoch:
                return
            send.flying -= 1
            if outcome is None:
                send.pieces = sorted(send.pieces + [(first, cut)])
            elif not outcome:
                self.restart(send)
            self.check_done(send)

        job.send(lambda limit: wire.frag(limit, send.receiver, epoch, first), completed, send.data[first:cut], link, wire.PLACED)

    def restart(self, send):
        """Data is in doubt: the receiver is asked what it lacks (section 11, rule 4)."""
        send.state, send.epoch = "NOTIFYING", (send.epoch + 1) & 0xFFFFFFFF
        send.pieces, send.on_rail, send.told = [], False, False

    def send_notify(self, job, send):
        send.on_rail = True
        epoch = send.epoch
        dead = [(rail.index, rail.highest_dead) for rail in job.rails if rail.highest_dead > 0][:DEAD_RAILS_MAX]

        def make(limit):
            return wire.notify(limit, send.id, send.receiver, epoch, send.ctx, self.rank, send.seq, dead)

        def completed(outcome):
            if send.state == "NOTIFYING" and send.epoch == epoch:
                send.on_rail = False
                send.told = outcome is True

        job.send(make, completed)

    # -------------------------------------------------------------- ends

    def fail(self, error):
        self.failure = error
        for send in list(self.queue):
            self.finish(send, error)

    def peer_said_bye(self):
        """It wants nothing any more: what it took is there; what it never answered it never took (section 12)."""
        self.said_bye = True
        for send in list(self.queue):
            self.finish(send, "ERR_PROC_FAILED" if send.state == "ENVELOPE" else None)
