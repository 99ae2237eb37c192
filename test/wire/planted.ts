// Mistakes inside multirail's endpoint that the suite must find, as exact edits of the production code (see ../sim/mutants/plant.ts): what
// each does wrong, the case that is played against it, and a clause that must catch it. A text that does not occur exactly once is an
// error.
import type { ClauseId } from '../../tools/wire-suite/clauses.ts';
import { type Edit, edit } from '../sim/mutants/edit.ts';

export interface PlantedInside {
  readonly name: string;
  readonly about: string;
  /** Name, or part of it, of the case that is played. */
  readonly case: string;
  readonly caughtBy: ClauseId;
  readonly edits: readonly Edit[];
  readonly transport?: 'ws';
  /** What does not happen is waited for this long; 700 unless said. */
  readonly limitMs?: number;
}

const BML = 'src/bml/bml.ts';
const DEPARTURE = 'src/progress/departure.ts';
const CORE = 'src/pml/core.ts';
const ENGINE = 'src/progress/engine.ts';
const FRAMER = 'src/btl/base/frame-hdr.ts';
const HANDSHAKE = 'src/btl/base/handshake.ts';
const HDR = 'src/pml/hdr.ts';
const INBOX = 'src/pml/inbox.ts';
const IP_MODULE = 'src/btl/tcp/ip-module.ts';
const LINK = 'src/btl/base/rail-link.ts';
const MATCH = 'src/pml/match.ts';
const OWED = 'src/pml/owed.ts';
const RAIL_EVENTS = 'src/progress/rail-events.ts';
const PML = 'src/pml/pml.ts';
const RECEIVER = 'src/pml/receiver.ts';
const SENDER = 'src/pml/sender.ts';
const STREAM_MODULE = 'src/btl/base/stream-module.ts';
const WS = 'src/btl/ws/module.ts';
const WS_STREAM = 'src/btl/ws/ws-stream.ts';

export const PLANTED_INSIDE: readonly PlantedInside[] = [
  // --- §1
  {
    name: 'packet-version-ignored',
    about: 'reads packets of any version',
    case: 'packets of other versions and types',
    caughtBy: 'CV-1',
    edits: [edit(HDR, 'if (version !== PACKET_VERSION)', 'if ((version as number) === -1)')],
  },
  {
    name: 'u53-unbounded',
    about: 'takes lengths beyond 2^53 − 1 for what they come to in a double',
    case: 'fields out of their ranges',
    caughtBy: 'CV-3',
    edits: [edit(HDR, 'if (high > 0x1f_ffff)', 'if (high < 0)')],
  },
  {
    name: 'zeros-demanded',
    about: 'ends the rail when a field called zero is not 0',
    case: 'zeros and unknown flags are not looked at',
    caughtBy: 'CV-2',
    edits: [
      edit(
        HDR,
        '  packet.creditLimit = getU53(view, OFFSET.creditLimit);\n',
        "  packet.creditLimit = getU53(view, OFFSET.creditLimit);\n  if (view.getUint32(4, true) !== 0) throw new MultirailError('ERR_PROTOCOL', 'not zero');\n",
      ),
    ],
  },
  {
    name: 'epochs-plain',
    about: 'compares message epochs of fragments as plain numbers',
    case: 'serial arithmetic of message epochs',
    caughtBy: 'CV-4',
    edits: [
      edit(
        RECEIVER,
        `    const ahead = serialDiff(packet.epoch, message.epoch);
    if (ahead > 0)
      throw`,
        `    const ahead = packet.epoch - message.epoch;
    if (ahead > 0)
      throw`,
      ),
    ],
  },
  {
    name: 'serial-plain',
    about: 'compares all serial numbers as plain numbers',
    case: 'serial arithmetic of message epochs',
    caughtBy: 'CV-4',
    edits: [edit('src/util/serial.ts', 'return (a - b) | 0;', 'return a - b;')],
  },
  // --- §2
  {
    name: 'higher-rank-dials',
    about: 'dials as the higher rank too',
    case: 'the acceptor never dials',
    caughtBy: 'AD-3',
    edits: [edit(BML, 'return this.options.rank <= rail.peer;', 'return this.options.rank >= rail.peer;')],
  },
  {
    name: 'one-link',
    about: 'makes one rail of a pair, however many both sides want',
    case: 'several rails are dialled, each with its key',
    caughtBy: 'AD-2',
    edits: [edit('src/btl/tcp/ip-config.ts', 'Math.min(LINKS_MAX, ours.links, theirs.links)', 'Math.min(1, ours.links, theirs.links)')],
  },
  {
    name: 'key-without-transport',
    about: 'leaves the name of the transport out of the key of a rail',
    case: 'several rails are dialled, each with its key',
    caughtBy: 'AD-2',
    edits: [edit(IP_MODULE, 'key: `${this.name}:${lower.name}', 'key: `${lower.name}')],
  },
  {
    name: 'links-from-one',
    about: 'counts the links of a pair from 1',
    case: 'several rails are dialled, each with its key',
    caughtBy: 'AD-2',
    edits: [edit(IP_MODULE, '#${link}`, attributes', '#${link + 1}`, attributes')],
  },
  {
    name: 'entry-without-credit',
    about: 'publishes no unexpectedBytesMax',
    case: 'a good handshake',
    caughtBy: 'AD-1',
    edits: [edit('tools/wire-suite/endpoint/job.ts', '        unexpectedBytesMax: start.unexpectedBytesMax,\n        btl', '        btl')],
  },
  {
    name: 'entry-of-another-process',
    about: 'publishes another incarnation than its own',
    case: 'a good handshake',
    caughtBy: 'AD-1',
    edits: [
      edit(
        'tools/wire-suite/endpoint/job.ts',
        '        incarnation: start.incarnation,\n        hostId: hostId(),\n        unexpectedBytesMax',
        '        incarnation: start.incarnation + 1,\n        hostId: hostId(),\n        unexpectedBytesMax',
      ),
    ],
  },
  // --- §3
  {
    name: 'partial-unreported',
    about: 'does not report what it has of a large frame that comes in slowly',
    case: 'a frame that is not whole is not counted, and its bytes are reported',
    caughtBy: 'CN-6',
    edits: [edit(LINK, 'now - this.reportedAt >= PARTIAL_REPORT_MS;', 'now - this.reportedAt >= 3_600_000;')],
  },
  {
    name: 'seventeen-refusals',
    about: 'bears 17 refusals within a second',
    case: 'too many refused payloads',
    caughtBy: 'NK-4',
    edits: [edit(LINK, 'if (this.refusalTimes.length <= refusalsMax) return;', 'if (this.refusalTimes.length <= refusalsMax + 1) return;')],
  },
  // --- §4
  {
    name: 'half-a-proof',
    about: 'compares 16 of the 32 bytes of a PROOF',
    case: 'a wrong secret',
    caughtBy: 'HS-2',
    edits: [
      edit(
        HANDSHAKE,
        "if (!sameBytes(body, transcriptMac(this.identity, 'dialer', helloBytes, this.challenge as Uint8Array))) {",
        "if (body.length !== 32 || !sameBytes(body.subarray(0, 16), transcriptMac(this.identity, 'dialer', helloBytes, this.challenge as Uint8Array).subarray(0, 16))) {",
      ),
    ],
  },
  {
    name: 'quarter-of-a-liveness-mac',
    about: 'compares 8 of the 32 bytes of the MAC of LIVENESS',
    case: 'liveness connections',
    caughtBy: 'LV-2',
    edits: [
      edit(
        HANDSHAKE,
        'return sameBytes(claim.body.subarray(LIVENESS_MAC), livenessMac(claim.body, epochKey));',
        'return sameBytes(claim.body.subarray(LIVENESS_MAC, LIVENESS_MAC + 8), livenessMac(claim.body, epochKey).subarray(0, 8));',
      ),
    ],
  },
  {
    name: 'short-nonce',
    about: 'as acceptor draws 8 bytes of its nonce, and leaves the others 0',
    case: 'a replayed handshake',
    caughtBy: 'HS-17',
    edits: [
      edit(
        STREAM_MODULE,
        'new Uint8Array(randomBytes(NONCE_BYTES))',
        'new Uint8Array(NONCE_BYTES).map((_, i) => (i < 8 ? randomBytes(1)[0] : 0))',
      ),
    ],
  },
  {
    name: 'short-nonce-of-the-dialer',
    about: 'as dialer draws 8 bytes of its nonce, and leaves the others 0',
    case: 'HELLO',
    caughtBy: 'HS-17',
    edits: [
      edit(
        'src/btl/base/stream-endpoint.ts',
        'new Uint8Array(randomBytes(NONCE_BYTES))',
        'new Uint8Array(NONCE_BYTES).map((_, i) => (i < 8 ? randomBytes(1)[0] : 0))',
      ),
    ],
  },
  // --- §5
  {
    name: 'ws-any-version',
    about: 'takes an upgrade of another version of WebSocket',
    case: 'upgrades that are refused',
    caughtBy: 'WS-3',
    transport: 'ws',
    edits: [edit('src/util/websocket.ts', 'if (version === VERSION) return undefined;', "if (version !== '') return undefined;")],
  },
  {
    name: 'ws-version-unnamed',
    about: 'refuses another version of WebSocket without naming its own',
    case: 'upgrades that are refused',
    caughtBy: 'WS-3',
    transport: 'ws',
    edits: [edit('src/util/websocket.ts', '`Sec-WebSocket-Version: ${VERSION}`, ', '')],
  },
  {
    name: 'ws-any-path',
    about: 'upgrades any path',
    case: 'upgrades that are refused',
    caughtBy: 'WS-4',
    transport: 'ws',
    edits: [edit(WS, 'if (request.url !== PATH || this.closed) {', 'if (this.closed) {')],
  },
  {
    name: 'ws-subprotocol',
    about: 'takes the first subprotocol that is offered',
    case: 'upgrades that are refused',
    caughtBy: 'WS-6',
    transport: 'ws',
    edits: [edit(WS, '      handleProtocols: noSubprotocol,\n', '')],
  },
  {
    name: 'ws-long-messages',
    about: 'takes messages of any length',
    case: 'WebSocket messages',
    caughtBy: 'WS-5',
    transport: 'ws',
    edits: [
      edit(
        WS,
        '      perMessageDeflate: false,\n      maxPayload: WS_MESSAGE_BYTES_MAX,\n      skipUTF8Validation: true,\n      handleProtocols',
        '      perMessageDeflate: false,\n      skipUTF8Validation: true,\n      handleProtocols',
      ),
    ],
  },
  {
    name: 'ws-texts',
    about: 'takes the bytes of a text message for frames',
    case: 'WebSocket messages',
    caughtBy: 'WS-2',
    transport: 'ws',
    edits: [edit(WS_STREAM, 'if (!isBinary) {', 'if (!isBinary) return;\n      if (data === undefined) {')],
  },
  {
    name: 'ws-borders',
    about: 'takes each message for a frame, and drops one that does not begin with a header',
    case: 'WebSocket messages',
    caughtBy: 'WS-1',
    transport: 'ws',
    edits: [
      edit(
        WS_STREAM,
        'for (const chunk of data as Buffer[]) this.received(chunk);',
        'const whole = Buffer.concat(data as Buffer[]);\n      if (whole.length >= 40 && whole.readUInt16LE(6) === 0x524d) this.received(whole);',
      ),
    ],
  },
  // --- §6
  {
    name: 'unknown-flags-refused',
    about: 'ends the rail over a flag of a packet that it does not know',
    case: 'zeros and unknown flags are not looked at',
    caughtBy: 'PK-2',
    edits: [
      edit(
        HDR,
        '  packet.flags = view.getUint16(OFFSET.flags, true);\n',
        "  packet.flags = view.getUint16(OFFSET.flags, true);\n  if (packet.flags > 0xff) throw new MultirailError('ERR_PROTOCOL', 'unknown flag');\n",
      ),
    ],
  },
  {
    name: 'never-issued-ids',
    about: 'takes an id that it never issued for one that is retired',
    case: 'ids that were never issued',
    caughtBy: 'PK-4',
    edits: [
      edit(
        RECEIVER,
        "if (hit === 'never-issued') {",
        "if (hit === 'never-issued') return undefined;\n    if (hit === ('nothing' as string)) {",
      ),
    ],
  },
  {
    name: 'payloads-anywhere',
    about: 'takes packets with a payload that must come without one',
    case: 'placed where it must not be, and payload',
    caughtBy: 'PK-9',
    edits: [edit(PML, 'if (payload.length > 0 && packet.type >= PACKET.RGET) {', 'if (payload.length > 0 && packet.type > 1000) {')],
  },
  {
    name: 'wrong-version-in-packets',
    about: 'says packet version 2 in its own packets',
    case: 'ACK says what is taken',
    caughtBy: 'PK-1',
    edits: [edit(HDR, 'view.setUint8(OFFSET.version, PACKET_VERSION);', 'view.setUint8(OFFSET.version, PACKET_VERSION + 1);')],
  },
  // --- §7
  {
    name: 'no-span',
    about: 'keeps a number however far ahead it is',
    case: 'how far ahead a number may be',
    caughtBy: 'MT-4',
    edits: [edit(INBOX, 'if (ahead > SEQ_SPAN_MAX)', 'if (ahead < -SEQ_SPAN_MAX * 4)')],
  },
  {
    name: 'early-not-copied',
    about: 'keeps an early message by reference to the memory that it came in',
    case: 'messages are delivered in the order',
    caughtBy: 'MT-1',
    edits: [edit(INBOX, 'envelope.payload = new Uint8Array(payload);\n      flow.early', 'envelope.payload = payload;\n      flow.early')],
  },
  {
    name: 'freed-context-keeps-charge',
    about: 'does not give back the credit of messages for a context that was freed',
    case: 'a context that was freed',
    caughtBy: 'CR-2',
    edits: [
      edit(
        INBOX,
        '    this.core.counters.freedContextDropped++;\n    this.core.releaseCharge(envelope);',
        '    this.core.counters.freedContextDropped++;',
      ),
    ],
  },
  {
    name: 'one-sequence-for-all-contexts',
    about: 'numbers the messages of all contexts in one sequence',
    case: 'contexts do not see each other',
    caughtBy: 'MT-9',
    edits: [edit(INBOX, 'const flow = peer.flowIn(packet.ctx);', 'const flow = peer.flowIn(0);')],
  },
  {
    name: 'newest-unexpected-first',
    about: 'gives a receive the newest unexpected message that fits',
    case: 'unexpected messages, oldest first',
    caughtBy: 'MT-6',
    edits: [edit(MATCH, 'return this.unexpected.find(source, tag)?.head?.item;', 'return this.unexpected.find(source, tag)?.tail?.item;')],
  },
  // --- §8
  {
    name: 'two-writers',
    about: 'lets two frames write the same bytes',
    case: 'two frames do not write the same bytes',
    caughtBy: 'RV-4',
    edits: [edit(RECEIVER, 'if (open.from < sink.to && sink.from < open.to) covered = true;', 'if (open.from === -1) covered = true;')],
  },
  // --- §9
  {
    name: 'older-notify-obeyed',
    about: 'takes a NOTIFY of an older epoch for one of the current epoch',
    case: 'NOTIFY of an older epoch is dropped',
    caughtBy: 'RR-5',
    edits: [
      edit(
        RECEIVER,
        `    const ahead = serialDiff(packet.epoch, message.epoch);
    if (ahead < 0) {
      core.counters.controlStale++;
      return;
    }
    if (message.state === 'OWING') {`,
        `    const ahead = Math.max(0, serialDiff(packet.epoch, message.epoch));
    if (message.state === 'OWING') {`,
      ),
    ],
  },
  {
    name: 'any-sender-notifies',
    about: "obeys a NOTIFY that names another sender's id",
    case: 'NOTIFY that names another sender',
    caughtBy: 'RR-6',
    edits: [
      edit(
        RECEIVER,
        'if (message.senderSlot !== packet.senderSlot || message.senderGeneration !== packet.senderGeneration) {',
        'if (message.senderSlot === -1) {',
      ),
    ],
  },
  {
    name: 'answer-adds',
    about: 'adds the ranges of a RESTARTACK to what it thinks is left, instead of replacing it',
    case: 'fragments in doubt are resumed',
    caughtBy: 'SR-3',
    edits: [
      edit(
        SENDER,
        '    message.toSend.clear();\n    for (const [from, to] of packet.missing)',
        '    message.toSend.add(0, packet.takeBytes);\n    for (const [from, to] of packet.missing)',
      ),
    ],
  },
  {
    name: 'restartnack-of-the-epoch',
    about: 'obeys a RESTARTNACK of the current epoch only',
    case: 'NOTIFY in doubt, and a second loss in the restart',
    caughtBy: 'SR-5',
    edits: [
      edit(
        SENDER,
        "if (message.state !== 'NOTIFYING') return this.stale();\n    this.core.counters.restartNacks++;",
        "if (message.state !== 'NOTIFYING' || packet.epoch !== message.epoch) return this.stale();\n    this.core.counters.restartNacks++;",
      ),
    ],
  },
  {
    name: 'fin-beyond',
    about: 'counts a FIN beyond the message',
    case: 'FINs to the receiver that do not fit',
    caughtBy: 'RV-12',
    edits: [
      edit(
        RECEIVER,
        'if (serialDiff(packet.epoch, message.epoch) > 0 || packet.to > message.takeBytes) {',
        'if (serialDiff(packet.epoch, message.epoch) > 0) {',
      ),
      edit(RECEIVER, "if (verdict === 'wrong') {", 'if (false) {'),
    ],
  },
  {
    name: 'fin-unoffered',
    about: 'counts a FIN for a window that it never offered',
    case: 'FINs to the receiver that do not fit',
    caughtBy: 'RV-17',
    edits: [edit(RECEIVER, "if (verdict === 'wrong') {", 'if (false) {')],
  },
  // --- §10
  {
    name: 'never-credits',
    about: 'owes no CREDIT: the limit goes with other packets alone',
    case: 'charges are released',
    caughtBy: 'CR-3',
    edits: [edit(CORE, 'this.options.unexpectedBytesMax / 4;', 'this.options.unexpectedBytesMax * 1e9;')],
  },
  {
    name: 'credit-in-doubt-told',
    about: 'takes credit that was in doubt for told',
    case: 'a CREDIT in doubt is told again',
    caughtBy: 'CR-4',
    edits: [edit(PML, 'else peer.creditTelling = peer.creditTold;', 'else peer.creditTold = peer.creditTelling;')],
  },
  {
    name: 'resends-pay',
    about: 'charges a message again when it is sent again',
    case: 'a resend needs no credit',
    caughtBy: 'CR-6',
    edits: [
      edit(
        'src/pml/eager.ts',
        '      this.core.counters.envelopesResent++;\n',
        '      this.core.counters.envelopesResent++;\n      peer.creditUsed += message.bytes + ENVELOPE_CHARGE_BYTES;\n',
      ),
    ],
  },
  // --- §11
  {
    name: 'first-rail-fenced',
    about: 'fences the first of the rails that a NOTIFY names, and no other',
    case: 'NOTIFY fences all the rails',
    caughtBy: 'RR-7',
    edits: [
      edit(RECEIVER, 'for (const dead of packet.deadRails) core.fence(', 'for (const dead of packet.deadRails.slice(0, 1)) core.fence('),
    ],
  },
  {
    name: 'raildown-once',
    about: 'does not tell the table of dead epochs when a rail comes up',
    case: 'RAILDOWN to the other side',
    caughtBy: 'RD-3',
    edits: [
      edit(
        OWED,
        'for (const dead of this.core.bml.deadEpochs(peer.bml)) {',
        'for (const dead of [] as { rail: number; epoch: number }[]) {',
      ),
    ],
  },
  {
    name: 'far-raildown-literal',
    about: 'takes an epoch of RAILDOWN literally, however far ahead it is',
    case: 'RAILDOWN from the other side',
    caughtBy: 'RD-6',
    edits: [edit(BML, 'const epoch = Math.min(upToEpoch, rail.highestSeen + EPOCHS_AHEAD_MAX);', 'const epoch = upToEpoch;')],
  },
  {
    name: 'unreachable-never',
    about: 'waits for a peer without a rail longer than the peer timeout',
    case: 'nothing came back within the peer timeout',
    caughtBy: 'RD-4',
    edits: [edit(RAIL_EVENTS, '? 0 : aliveMs - since;', '? 0 : (aliveMs - since) / 1e6;')],
  },
  // --- §12
  {
    name: 'receives-outlive-bye',
    about: 'leaves receives open that a peer which said BYE can never match',
    case: 'the peer leaves first',
    caughtBy: 'BY-2',
    edits: [edit(PML, '    this.inbox.endPosted(rank, peer.left);\n', '')],
  },
  {
    name: 'sends-outlive-bye',
    about: 'keeps sends open to a peer that said BYE',
    case: 'fragments in doubt when the peer has left',
    caughtBy: 'BY-3',
    edits: [edit(PML, '    this.sender.peerSaidBye(peer);\n', '')],
  },
  {
    name: 'bye-uncounted',
    about: "does not count the peer's BYE",
    case: 'a good end',
    caughtBy: 'BY-4',
    edits: [edit(LINK, '        this.countFrame(FRAME_HEADER_BYTES, true);\n', '')],
  },
  {
    name: 'finalized-and-welcoming',
    about: 'does not refuse a peer with FINALIZED after it has left',
    case: 'a good end',
    caughtBy: 'BY-6',
    edits: [edit(ENGINE, 'if (peer.bml.closed || this.isClosed) return', 'if ((peer.bml.closed || this.closed) && this.rank < 0) return')],
  },
  {
    name: 'leaves-at-once',
    about: 'says BYE while messages of its own are not delivered',
    case: 'a rank leaves when nothing is owed',
    caughtBy: 'BY-7',
    edits: [edit(DEPARTURE, "if (peer.stage === 'DRAINING' && pml.isQuiet(peer.rank)) {", "if (peer.stage === 'DRAINING') {")],
  },
  {
    name: 'bye-once',
    about: 'does not say BYE again on a rail that comes up later',
    case: 'BYE that was not counted is said again',
    caughtBy: 'BY-5',
    edits: [edit(DEPARTURE, "    if (peer.stage === 'BYE_SENT') this.sayBye(peer, rail, nowMs);\n", '')],
  },
  // --- §13
  {
    name: 'alive-too-fast',
    about: 'its alive time goes three times as fast as the clock',
    case: 'alive time',
    caughtBy: 'LN-3',
    edits: [edit(LINK, 'const alive = Math.floor(this.aliveMs) >>> 0;', 'const alive = Math.floor(this.aliveMs * 3) >>> 0;')],
  },
  {
    name: 'alive-stands',
    about: 'says no alive time',
    case: 'alive time',
    caughtBy: 'LN-3',
    edits: [edit(LINK, 'const alive = Math.floor(this.aliveMs) >>> 0;', 'const alive = 0;')],
  },
  {
    name: 'alive-per-turn',
    about: 'adds 50 ms to its alive time in every turn',
    case: 'alive time',
    caughtBy: 'LN-3',
    edits: [
      edit(
        ENGINE,
        'this.aliveMs += Math.min(Math.max(0, nowMs - this.nowMs), ALIVE_PER_TURN_MAX_MS);',
        'this.aliveMs += ALIVE_PER_TURN_MAX_MS;',
      ),
    ],
  },
  {
    name: 'idle-judged',
    about: 'gives a rail up on which nothing is outstanding and nothing came for a while',
    case: 'a rail that says nothing',
    caughtBy: 'LN-1',
    edits: [
      edit(
        BML,
        "    if (rail.attributes.liveness === 'self') return;\n",
        "    if (aliveMs - rail.progressAliveMs > 500) return this.fence(peer, rail.index, rail.epoch, { kind: 'silent', text: 'idle' });\n    this.wakeAt(nowMs + 50);\n    if (rail.attributes.liveness === 'self') return;\n",
      ),
    ],
  },
  {
    name: 'busy-judged',
    about: 'gives a rail up whose peer said nothing for a while, although the alive time of that peer stands',
    case: 'a peer that is busy',
    caughtBy: 'LN-4',
    transport: 'ws',
    edits: [edit(BML, 'if (peer.aliveMs - rail.progressPeerAliveMs >= timeoutMs / 2) {', 'if (timeoutMs > 0) {')],
  },
  {
    name: 'silence-is-death',
    about: 'takes a peer whose rail was lost for dead',
    case: 'a peer that is busy',
    caughtBy: 'LN-5',
    edits: [
      edit(
        ENGINE,
        '    this.pml.handleRailDown(endpoint.peer, endpoint.rail, epoch);\n',
        "    this.pml.handleRailDown(endpoint.peer, endpoint.rail, epoch);\n    this.failPeer(endpoint.peer, 'ERR_PROC_FAILED', 'its rail was lost');\n",
      ),
    ],
  },
  // --- §14
  {
    name: 'no-pauses',
    about: 'dials again at once, as often as it is refused',
    case: 'a rail that does not come up',
    caughtBy: 'RE-2',
    edits: [edit(BML, 'rail.nextDialMs = nowMs + rail.backoffMs * (1 - jitterOf(rail, this.options.rank));', 'rail.nextDialMs = nowMs;')],
  },
  {
    name: 'dials-once',
    about: 'does not dial again after an attempt that failed',
    case: 'a rail that does not come up',
    caughtBy: 'RE-2',
    limitMs: 300,
    edits: [
      edit(BML, 'rail.nextDialMs = nowMs + rail.backoffMs * (1 - jitterOf(rail, this.options.rank));', 'rail.nextDialMs = nowMs + 1e9;'),
    ],
  },
  {
    name: 'gives-up',
    about: 'gives a rail up after five attempts',
    case: 'a rail that does not come up',
    caughtBy: 'RE-2',
    edits: [
      edit(
        BML,
        'if (nowMs >= rail.nextDialMs) this.dial(rail, nowMs, aliveMs);',
        'if (nowMs >= rail.nextDialMs && rail.counters.connectAttempts < 5) this.dial(rail, nowMs, aliveMs);',
      ),
    ],
  },
  {
    name: 'pauses-without-end',
    about: 'doubles the pause after each attempt, and knows no longest one',
    case: 'a rail that does not come up',
    caughtBy: 'RE-2',
    edits: [edit(BML, 'Math.min(redialMaxMs, rail.backoffMs * 2);', 'Math.max(redialMaxMs, rail.backoffMs * 4);')],
  },
  {
    name: 'lost-for-good',
    about: 'does not dial a rail again that was up and is lost',
    case: 'a lost rail is dialled again, and used',
    caughtBy: 'RE-3',
    edits: [
      edit(
        BML,
        '    this.wakeAt(nowMs);\n  }\n\n  /** Exponential back-off',
        '    rail.nextDialMs = Number.POSITIVE_INFINITY;\n    this.wakeAt(nowMs);\n  }\n\n  /** Exponential back-off',
      ),
    ],
  },
  {
    name: 'waits-for-siblings',
    about: 'dials a lost rail only when no other one is left',
    case: 'one rail is lost while another lives',
    caughtBy: 'RE-3',
    edits: [
      edit(
        BML,
        'if (nowMs >= rail.nextDialMs) this.dial(rail, nowMs, aliveMs);',
        'if (rail.losses.length > 0 && peer.rails.some((one) => one.isCarrying)) return;\n        if (nowMs >= rail.nextDialMs) this.dial(rail, nowMs, aliveMs);',
      ),
    ],
  },
  // --- §15
  {
    name: 'long-packet-headers',
    about: 'takes packet headers of more than 4096 bytes',
    case: 'headers that say what cannot be',
    caughtBy: 'LM-1',
    edits: [edit(FRAMER, 'return { packetHeaderBytesMax: HEADER_BYTES_MAX,', 'return { packetHeaderBytesMax: 65_535,')],
  },
  {
    name: 'long-payloads',
    about: 'takes payloads of any length',
    case: 'headers that say what cannot be',
    caughtBy: 'LM-2',
    edits: [edit(FRAMER, 'payloadBytesMax: frameBytesMax, onlyDataHasBytes: true }', 'payloadBytesMax: 2 ** 32, onlyDataHasBytes: true }')],
  },
  {
    name: 'long-handshakes',
    about: 'takes long frames in the handshake',
    case: 'frames that are too long, or damaged, in the handshake',
    caughtBy: 'LM-3',
    edits: [edit(FRAMER, 'packetHeaderBytesMax: 512 - FRAME_HEADER_BYTES,', 'packetHeaderBytesMax: 4096,')],
  },
  {
    name: 'many-windows',
    about: 'takes an RGET with more than 16 windows',
    case: 'fields out of their ranges',
    caughtBy: 'LM-5',
    edits: [edit(HDR, 'if (count > WINDOWS_MAX) throw', 'if (count > 4000) throw')],
  },
  {
    name: 'many-rails',
    about: 'takes a NOTIFY with more than 128 rails',
    case: 'NOTIFY with as many rails',
    caughtBy: 'LM-6',
    edits: [
      edit(
        HDR,
        'end = getRailEpochs(view, end, count, DEAD_RAILS_MAX, packet.deadRails);',
        'end = getRailEpochs(view, end, count, 500, packet.deadRails);',
      ),
    ],
  },
  {
    name: 'many-ranges',
    about: 'takes a RESTARTACK with more than 128 ranges',
    case: 'RESTARTACK with as many ranges',
    caughtBy: 'LM-7',
    edits: [edit(HDR, 'if (count > MISSING_RANGES_MAX || fixed', 'if (count > 200 || fixed')],
  },
  {
    name: 'negative-tags',
    about: 'takes tags above 2^31 − 1 for negative ones',
    case: 'fields out of their ranges',
    caughtBy: 'LM-8',
    edits: [edit(HDR, 'if (packet.tag < 0) throw', 'if (packet.tag === 0.5) throw')],
  },
];
