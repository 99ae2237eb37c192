// The clauses of docs/internals/PROTOCOL.md, one by one: what the suite judges. `says` is a sentence of the document, word for word (a test
// looks it up in its section); where nothing outside an implementation can tell, `untestable` has the reason.

interface ClauseRow {
  /** Section of docs/internals/PROTOCOL.md. */
  section: string;
  says: string;
  /** Why no tester at the other end of a wire can see it. */
  untestable?: string;
}

const ROWS = {
  // --- conventions
  'CV-1': { section: '1', says: 'A frame or packet of another version ends the connection.' },
  'CV-2': { section: '1', says: 'Fields called zero are written as 0 and ignored by readers.' },
  'CV-3': { section: '1', says: 'a larger one breaks the protocol' },
  'CV-4': { section: '1', says: 'Serial numbers are u32 and compared by the signed 32-bit difference' },
  // --- addresses and rails
  'AD-1': { section: '2', says: 'every rank publishes one JSON entry and reads all others' },
  'AD-2': { section: '2', says: 'Per pair `min(links of both)` rails. The key of a rail is `NAME:LOWER_INTERFACE-UPPER_INTERFACE#LINK`.' },
  'AD-3': { section: '2', says: '**The lower rank dials**; the acceptor never does.' },
  'AD-4': {
    section: '2',
    says: 'both sides refuse a rail whose packets would leave by another interface',
    untestable: 'needs hosts with several interfaces; the tests of the network lab do it',
  },
  'AD-5': {
    section: '2',
    says: 'Otherwise: pairs of non-loopback interfaces that share a subnet (a maximum matching, in the order of the lists, first with first)',
    untestable: 'an address list cannot be put onto a host from outside; test vectors are in test/unit/btl',
  },
  // --- frames
  'FR-1': { section: '3', says: 'A TCP rail is a stream of frames without gaps.' },
  'FR-2': { section: '3', says: 'A reader checks magic, version and both lengths **before** it keeps anything for a frame' },
  'FR-3': { section: '3', says: 'then waits for the packet header and checks `headerCrc` and the flags' },
  'FR-4': {
    section: '3',
    says: 'If magic, version, a length, the CRC or the kind is wrong, the frame is *damaged* and the rail epoch ends.',
  },
  'FR-5': { section: '3', says: 'No byte behind it is interpreted.' },
  'FR-6': { section: '3', says: 'bytes of this epoch that the sender has taken from the stream after the handshake' },
  'FR-7': { section: '3', says: 'milliseconds during which the sender was polling its rails, modulo 2^32' },
  'FR-8': { section: '3', says: 'CRC32C over bytes 0–35 and the packet header' },
  'FR-9': {
    section: '3',
    says: 'Only DATA has flags or a packet header on a live rail; only DATA, and PROBE up to 65 536 bytes of padding, has a payload',
  },
  // --- counting
  'CN-1': { section: '3', says: 'Each direction of an epoch numbers them 1, 2, 3, … modulo 2^32' },
  'CN-2': { section: '3', says: 'another number than the next one, or a counted frame after BYE, ends the epoch' },
  'CN-3': {
    section: '3',
    says: 'A receiver raises `deliveredCount` by one **after** the layer above has taken the frame (or the frame was refused, below), never before.',
  },
  'CN-4': { section: '3', says: 'Every frame of any kind carries the newest count, which is cumulative.' },
  'CN-5': { section: '3', says: 'With nothing to send, COUNT carries it' },
  'CN-6': { section: '3', says: 'every 50 ms while one large frame comes in slowly' },
  'CN-7': { section: '3', says: 'A count below the last one, or above what was sent, ends the epoch.' },
  'CN-8': { section: '3', says: 'when the epoch ends, all frames that are not covered are **in doubt**, in order' },
  // --- refused payloads
  'NK-1': {
    section: '3',
    says: "A DATA frame whose header is sound and whose payload fails `payloadCrc` is *refused*: it changes no message's state",
  },
  'NK-2': {
    section: '3',
    says: 'NACK(frameNumber) is put on the same rail with the count **before** that frame, then the frame is counted',
  },
  'NK-3': { section: '3', says: 'NACK for a frame that is not outstanding, or is a BYE, ends the epoch.' },
  'NK-4': { section: '3', says: 'More than 16 refusals within a second end it too.' },
  // --- placed frames, probes, back-pressure
  'PL-1': { section: '3', says: 'A FRAG without PLACED, or another packet with it, breaks the protocol.' },
  'PB-1': { section: '3', says: '**PROBE** is answered by PROBE_ANSWER with the same id, in order' },
  'PB-2': { section: '3', says: 'of more than 16 unanswered ones the oldest may go unanswered' },
  'BP-1': {
    section: '3',
    says: 'The sender chooses its windows; the receiver is never asked.',
    untestable: 'it states what need not be done',
  },
  // --- handshake, the acceptor
  'HS-1': { section: '4', says: 'The acceptor checks version, then lengths, then the job; the proof; then what HELLO claims.' },
  'HS-2': { section: '4', says: 'Before the proof it tells nothing but BAD_VERSION and BAD_JOB and otherwise closes.' },
  'HS-3': {
    section: '4',
    says: '`MAC(role) = HMAC-SHA-256(key, "multirail handshake 2 " + role + "\\n" + body of HELLO + bytes 0–47 of CHALLENGE)`',
  },
  'HS-4': {
    section: '4',
    says: 'Handshake frames have `deliveredCount`, `aliveMs`, `receivedBytes`, `frameNumber` and `flags` 0 and are at most 512 bytes in all.',
  },
  'HS-5': {
    section: '4',
    says: 'Order at the acceptor: its own rank (RAIL_MISMATCH); unknown rank; a peer declared failed here; an older incarnation',
  },
  'HS-6': {
    section: '4',
    says: 'a **newer incarnation, which proves the older process dead**: it is declared failed and the newcomer is refused with PEER_FAILED',
  },
  'HS-7': { section: '4', says: 'tries again later; the two sides computed different rails' },
  'HS-8': { section: '4', says: '`epoch ≤ max(highest dead, live)` is STALE_EPOCH' },
  'HS-9': {
    section: '4',
    says: 'a live older epoch is ended (`railDown`, its frames in doubt), WELCOME is written, the new epoch is live',
  },
  'HS-10': { section: '4', says: 'No byte may follow the PROOF before WELCOME.' },
  'HS-11': { section: '4', says: 'Both sides time a handshake (§15).' },
  'HS-12': { section: '4', says: 'Both sides accept DATA from WELCOME on' },
  'HS-13': { section: '4', says: '**send none before a PROBE of their own was answered** on the new epoch' },
  'HS-14': { section: '4', says: 'A connection that closes before PROOF is therefore no reason for alarm.' },
  'HS-15': { section: '4', says: 'A job without a secret uses the ASCII text `multirail job JOBID`' },
  'HS-16': {
    section: '4',
    says: 'accepts and dials loopback addresses only',
    untestable: 'needs a tester on another host; unit tests of the transports do it',
  },
  'HS-17': { section: '4', says: 'both nonces are fresh in every attempt' },
  'HS-18': { section: '4', says: 'MACs are compared in constant time.', untestable: 'a matter of code, not of answers' },
  'HS-19': {
    section: '4',
    says: 'An epoch more than 2^20 above the highest epoch that the acceptor has seen is refused with STALE_EPOCH too',
  },
  // --- liveness connections
  'LV-1': { section: '4', says: 'The answer is WELCOME, or a close without a reply' },
  'LV-2': { section: '4', says: 'when the epoch is not live, the MAC is wrong, or the number is not above every one accepted before' },
  'LV-3': { section: '4', says: "The loss of this connection does not end the epoch; the epoch's end closes it." },
  // --- handshake, the dialer
  'DL-1': { section: '4', says: 'HELLO who I am, which rail and epoch, nonceA' },
  'DL-2': { section: '4', says: "The dialer checks the acceptor's MAC and rank before it sends its own" },
  'DL-3': { section: '4', says: 'believes another REFUSE only after its PROOF' },
  'DL-4': { section: '4', says: 'dials with an epoch above `highest epoch`' },
  'DL-5': { section: '4', says: 'ends all its requests to this peer with ERR_PROC_FAILED: failed is permanent and mutual' },
  'DL-6': { section: '4', says: "The dialer's epoch is `max(highest seen, highest dead) + 1`, counted up for every attempt." },
  'DL-9': {
    section: '4',
    says: 'When `highest epoch` is more than 2^20 above its own highest, a dialer uses its own highest plus 2^20 instead.',
  },
  'DL-10': {
    section: '4',
    says: 'A `highest epoch` below the epoch that the dialer asked for means that nothing above was ever admitted: it dials with the next number above that one',
  },
  'DL-7': { section: '11', says: 'A lost rail is dialled without end (§14) and used again after a probe was answered.' },
  'DL-8': {
    section: '4',
    says: 'It withholds PROOF: once CHALLENGE has come it gives the old epoch 100 ms more',
    untestable: 'begins with a silence of seconds that only some implementations notice; the tests of the endpoint do it',
  },
  // --- other transports
  'WS-1': { section: '5', says: 'Binary messages carry pieces of the same byte stream; their borders mean nothing.' },
  'WS-2': { section: '5', says: 'A text message ends the epoch.' },
  'WS-3': { section: '5', says: '(another one is answered by `426` with `Sec-WebSocket-Version: 13`' },
  'WS-4': { section: '5', says: 'The upgrade is `GET /multirail`, exactly this path' },
  'WS-5': { section: '5', says: 'A message has at most 262 144 bytes.' },
  'WS-6': { section: '5', says: 'none is named in the answer' },
  'SM-1': {
    section: '5',
    says: '`sm` rails join processes of one kernel and one network, process and user namespace.',
    untestable: 'there is no wire; the suite of the transports covers it',
  },
  'VB-1': {
    section: '5',
    says: '`verbs` rails join ports of RDMA devices by reliable-connected queue pairs.',
    untestable: 'needs RDMA devices on both sides; the tests in the guest cover it',
  },
  // --- packets
  'PK-1': { section: '6', says: 'The length of a packet must be exactly what its type and counts say.' },
  'PK-2': { section: '6', says: 'Unknown flags are ignored.' },
  'PK-3': { section: '6', says: "world rank of the sender; must be the rail's peer" },
  'PK-4': {
    section: '6',
    says: 'so an id is live, **retired** (its message is permanently done; the generation itself is the tombstone and nothing else is kept), or never issued, which breaks the protocol',
  },
  'PK-5': { section: '6', says: "A packet that breaks the protocol changes no message's state; the rail that carried it ends as damaged." },
  'PK-6': { section: '6', says: 'Every packet begins with these 16 bytes' },
  'PK-7': {
    section: '6',
    says: 'A packet of one peer that names a message of another breaks it too.',
    untestable: 'needs a job of three; the simulator does it',
  },
  'PK-8': { section: '6', says: 'A type that is not in this table breaks the protocol' },
  'PK-9': { section: '6', says: 'The packets that have no payload in the table must come without one' },
  // --- matching
  'MT-1': { section: '7', says: 'MATCH, RNDV and RGET take numbers 0, 1, 2, … modulo 2^32, in the order of the sends' },
  'MT-2': {
    section: '7',
    says: 'The receiver delivers them in that order: a lower number, or one that already waits, is a **duplicate**, dropped without an answer',
  },
  'MT-3': { section: '7', says: 'a higher one waits, copied' },
  'MT-4': { section: '7', says: 'More than 2^30 ahead breaks the protocol.' },
  'MT-5': {
    section: '7',
    says: 'A delivered envelope matches the **oldest** posted receive whose source and tag fit (either may be a wildcard)',
  },
  'MT-6': { section: '7', says: 'else it joins the unexpected messages, which receives and probes search in order of arrival' },
  'MT-7': {
    section: '7',
    says: 'A context that does not exist yet comes into being with its first arrival, while a communicator is being made here',
  },
  'MT-8': {
    section: '7',
    says: 'What comes for one that was freed while a member was gone is taken in sequence, its credit released, and dropped.',
  },
  'MT-9': { section: '7', says: 'Per context and ordered pair of ranks' },
  'MT-10': {
    section: '7',
    says: 'what comes for one that is not known is a copy of what came before it was freed, and is dropped without a trace',
    untestable: 'a driver makes no communicators: to it any context may come; the suites of collectives and of the simulator do it',
  },
  // --- eager and rendezvous, the receiver
  'RV-1': { section: '8', says: 'MATCH with the whole payload' },
  'RV-2': { section: '8', says: 'On the match the receiver answers ACK with what it takes; the first part counts as received.' },
  'RV-3': { section: '8', says: 'so any range may come on any rail in any order' },
  'RV-4': { section: '8', says: 'touches no byte that is counted or that another frame is writing' },
  'RV-5': {
    section: '8',
    says: 'A FRAG of an older epoch, for a retired id, or that is a duplicate is written nowhere and is counted as a frame.',
  },
  'RV-6': { section: '8', says: 'A newer epoch, or a range beyond takeBytes, breaks the protocol.' },
  'RV-16': { section: '8', says: 'A FRAG of no bytes brings nothing, but is otherwise a FRAG like any other' },
  'RV-7': { section: '8', says: 'A range counts when its frame is whole, and once.' },
  'RV-8': { section: '8', says: 'The first FRAG or FIN of an epoch proves that the answer arrived.' },
  'RV-9': {
    section: '8',
    says: 'takeBytes below messageBytes ends that receive with ERR_TRUNCATE, and nothing else; the sender is not told',
  },
  'RV-10': { section: '8', says: 'When none lives, or the receive is not contiguous, it answers ACK and all goes on as for RNDV.' },
  'RV-11': { section: '8', says: 'Windows are offered only on rails whose kind can be put to; on tcp and ws there are none.' },
  'RV-12': { section: '9', says: 'older epoch or not RECEIVING | dropped. Newer epoch or beyond takeBytes: breaks the protocol' },
  'RV-18': {
    section: '8',
    says: 'A receiver that gets a FRAG with VOID in state RECEIVING and of the current epoch considers the whole message received, and ends the receive with ERR_BUFFER.',
  },
  'RV-19': { section: '8', says: 'any receive that it matches takes nothing and ends with ERR_BUFFER' },
  'RV-17': { section: '8', says: 'A FIN for any other window breaks the protocol.' },
  'RV-13': {
    section: '8',
    says: "The receiver reads the ranges from the sender's windows whose rail epochs live, and ends the message by FIN with TO_SENDER.",
    untestable: 'needs rails with one-sided operations',
  },
  'RV-14': { section: '9', says: 'the answer, until delivered or proved' },
  'RV-15': {
    section: '8',
    says: 'So the receiver offers windows in ascending order until takeBytes',
    untestable: 'needs rails with one-sided operations',
  },
  // --- the sender
  'SD-1': { section: '8', says: 'The send is done at once; the sender keeps a copy until the frame is delivered.' },
  'SD-2': { section: '8', says: 'RNDV with at most 16 KiB of first part (none without credit; all of a short synchronous one)' },
  'SD-3': { section: '8', says: 'The sender then sends the rest of [0, takeBytes) as FRAGs' },
  'SD-4': { section: '8', says: 'cut on multiples of `fragBytes`, lowest first' },
  'SD-5': { section: '8', says: "The send is done when every byte taken is delivered, by the rails' counts" },
  'SD-6': { section: '11', says: 'In-doubt MATCH, and RNDV or RGET without an answer: sent again, same seq.' },
  'SD-7': { section: '9', says: 'not ENVELOPE: dropped. For a MATCH, or takeBytes beyond the message: breaks the protocol' },
  'SD-8': { section: '9', says: 'its range is to be sent again' },
  'SD-9': { section: '9', says: 'sent again, while in ENVELOPE' },
  'SD-10': { section: '9', says: 'of the current epoch in ENVELOPE or NOTIFYING: kept, it overtook the answer. Else dropped' },
  'SD-11': { section: '8', says: '**Eager** (at most the eager limit, not synchronous, with credit and room in the store)' },
  // --- restart, the receiver
  'RR-1': { section: '11', says: 'then answers RESTARTACK with what it lacks, lowest first, at most 128 ranges' },
  'RR-2': {
    section: '11',
    says: '`tailFrom`: from there on everything is missing, and the receiver no longer counts what it may have of it',
  },
  'RR-3': {
    section: '11',
    says: 'A NOTIFY that names a retired id is answered by RESTARTNACK; nothing else is kept of finished messages.',
  },
  'RR-4': { section: '9', says: 'RECEIVING: answered again, nothing else; the same answer' },
  'RR-5': { section: '9', says: '| NOTIFY, older epoch | dropped |' },
  'RR-6': { section: '9', says: "| NOTIFY that names another sender's id | breaks the protocol |" },
  'RR-7': { section: '11', says: 'fences those rails up to those epochs' },
  'RR-8': { section: '11', says: 'revokes every sink of that message on every rail' },
  'RR-9': { section: '11', says: 'takes over the epoch (FRAGs and FINs of older ones are dropped from now on)' },
  'RR-10': { section: '9', says: 'answer or FIN delivered; NOTIFY (RESTARTNACK owed); peer said BYE or failed' },
  'RR-11': { section: '9', says: 'RESTARTNACK for a late NOTIFY, until delivered' },
  'RR-12': { section: '11', says: 'Each of these may strike again at any moment, in the restart too.' },
  'RR-13': { section: '11', says: 'The receiver drops the duplicate; its ACK or FIN stays owed in its own right, until delivered.' },
  // --- restart, the sender
  'SR-1': { section: '11', says: "NOTIFY(ids, ctx, source, seq, epoch + 1, every rail's highest dead epoch)" },
  'SR-2': { section: '9', says: 'RNDVRESTARTNOTIFY of a new epoch is to be sent or on a rail; its answer is waited for.' },
  'SR-3': { section: '9', says: 'the list **replaces** the view: inside to send, outside delivered' },
  'SR-4': { section: '9', says: '| RESTARTACK, RESTARTNACK, RECVERRNOTIFY, FIN | dropped |' },
  'SR-5': { section: '9', says: 'RESTARTNACK of **any** epoch; peer failed or said BYE' },
  'SR-6': { section: '9', says: 'releases memory and counts for nothing' },
  'SR-7': { section: '9', says: 'NOTIFY, until delivered' },
  'SR-8': { section: '11', says: '<-RESTARTACK(e1) late-- dropped: not of epoch 2' },
  'SR-9': {
    section: '9',
    says: 'Data of this message is in doubt; nothing is scheduled, own puts on living rails are waited for.',
    untestable: 'needs rails with one-sided operations; without them the state is left at once',
  },
  'SR-10': {
    section: '9',
    says: 'The request is complete; FINs of its puts are not yet known to be delivered.',
    untestable: 'needs rails with one-sided operations',
  },
  'SR-11': {
    section: '9',
    says: 'Matched an RGET whose rails live: this side reads by gets and counts what they bring.',
    untestable: 'needs rails with one-sided operations',
  },
  // --- rails that are lost
  'RD-1': { section: '11', says: 'The side that gets it fences that rail **up to that epoch**; a newer one is untouched.' },
  'RD-2': {
    section: '11',
    says: 'RAILDOWN(rail, epoch) is owed to the peer until delivered over any rail, or until that rail is UP in a newer epoch.',
  },
  'RD-3': {
    section: '11',
    says: 'When any rail comes up, RAILDOWN is owed for every rail whose highest dead epoch has no newer live one.',
  },
  'RD-4': { section: '11', says: 'After the peer timeout (in own alive time) requests end with ERR_PROC_UNREACHABLE.' },
  'RD-5': { section: '11', says: 'Either is permanent: the peer is fenced on all rails and refused with PEER_FAILED.' },
  'RD-6': { section: '11', says: 'An epoch more than 1000 above the highest that was seen counts as that one plus 1000' },
  // --- credit
  'CR-1': {
    section: '10',
    says: '`creditLimit` in **every** packet is the total of bytes that the receiver of the packet may first-send to its sender since the start',
  },
  'CR-2': {
    section: '10',
    says: 'The receiver releases a charge when the payload is disposed of (matched, or dropped with its context; never for a duplicate)',
  },
  'CR-3': {
    section: '10',
    says: 'A CREDIT packet is owed when the limit is a quarter of unexpectedBytesMax above what the peer may have been told',
  },
  'CR-4': { section: '10', says: 'in doubt counts as not told' },
  'CR-5': { section: '10', says: 'an absolute limit, of which the highest ever seen counts' },
  'CR-6': {
    section: '10',
    says: 'An envelope with CHARGED costs its payload + 128 bytes, once, when its send starts; a resend costs nothing.',
  },
  'CR-7': {
    section: '10',
    says: 'An envelope that does not fit leaves as RNDV without data and without CHARGED, so envelopes always flow.',
  },
  // --- the end of a job
  'BY-1': {
    section: '12',
    says: 'Then it says BYE on every carrying rail, and on every rail that comes up later, and sends no packet to that peer any more.',
  },
  'BY-2': { section: '12', says: 'receives from it that cannot match end with ERR_PROC_FAILED' },
  'BY-3': { section: '12', says: 'All sends to it are done' },
  'BY-4': {
    section: '12',
    says: "A side whose BYE was counted and that has the peer's BYE reports its count and closes the rail in good order",
  },
  'BY-5': { section: '12', says: "A rail that closes or breaks before this side's BYE was counted is lost as any other" },
  'BY-6': { section: '12', says: 'then it refuses that peer with FINALIZED' },
  'BY-7': { section: '12', says: 'waits, per peer, until nothing of its own is undelivered and nothing is owed' },
  // --- liveness, dialling again, limits
  'LN-1': { section: '13', says: 'Nothing outstanding, no frame and no probe: not judged' },
  'LN-3': { section: '13', says: 'each turn of its loop adds the time since the last one, **at most 50 ms**' },
  'LN-2': {
    section: '13',
    says: 'the rail is lost (`silent`)',
    untestable: 'needs a network that swallows packets; the tests of the network lab and of the simulator do it',
  },
  'LN-4': {
    section: '13',
    says: "No progress for T, and the peer's alive time does not advance: it is busy, gone, or all rails are dead.",
  },
  'LN-5': { section: '13', says: "Only the launcher's word or the peer timeout ends a peer; a rail's silence never does." },
  'RE-2': { section: '14', says: 'Pause before an attempt' },
  'RE-3': { section: '14', says: 'n starts again after each loss and after each rail that came up' },
  'RE-1': {
    section: '14',
    says: '`redialMin · 2^n` up to `redialMax`',
    untestable: 'a schedule with jitter and parameters of its own; unit tests of src/bml cover ours',
  },
  'LM-1': { section: '15', says: '| packet header | 4096 bytes |' },
  'LM-2': { section: '15', says: '| payload of a frame, tcp and ws | 16 842 752 bytes (16 MiB + 64 KiB) |' },
  'LM-3': { section: '15', says: '| frame in the handshake | 512 bytes, no payload |' },
  'LM-4': { section: '15', says: '| time for a handshake | 3000 ms of alive time (`btl_base_handshake_timeout_ms`) |' },
  'LM-5': { section: '15', says: '| windows in RGET, announced PUTs | 16 |' },
  'LM-6': { section: '15', says: '| rails in NOTIFY | 128 |' },
  'LM-7': { section: '15', says: '| ranges in RESTARTACK | 128 |' },
  'LM-8': { section: '15', says: '| tag | 2^31 − 1 |' },
  'LM-9': {
    section: '15',
    says: '| handshakes of strangers at a time | 256 (`btl_base_handshakes_max`) |',
    untestable: 'an attack on the endpoint; the tests of the transports make it',
  },
} as const satisfies Record<string, ClauseRow>;

export type ClauseId = keyof typeof ROWS;

export interface Clause extends ClauseRow {
  id: ClauseId;
}

export const CLAUSES: readonly Clause[] = Object.entries(ROWS).map(([id, row]) => ({ id: id as ClauseId, ...row }));
