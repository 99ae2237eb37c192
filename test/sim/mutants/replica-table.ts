// The planted mistakes in replicas (src/ft/replica): part of table.ts. The random runs of the profile `replica` find them.
import { edit } from './edit.ts';
import type { Planted } from './table.ts';

const DIGEST = 'src/ft/replica/digest.ts';
const INBOX = 'src/pml/inbox.ts';
const LEAD = 'src/ft/replica/lead.ts';
const OUTGOING = 'src/ft/replica/outgoing.ts';
const READY = 'src/ft/replica/ready.ts';
const SHADOW = 'src/ft/replica/shadow.ts';
const STREAMS = 'src/ft/replica/streams.ts';
const SUCCESSION = 'src/pml/succession.ts';
const TAKEOVERS = 'src/ft/replica/takeovers.ts';

export const PLANTED_REPLICAS: readonly Planted[] = [
  {
    name: 'digest-not-compared',
    sentence: 'Of two messages everything is compared but their bytes.',
    edits: [edit(DIGEST, "firstDifference(lead.digest, shadow.digest) === -1 ? undefined : 'digest'", 'undefined')],
    found: [{ profile: 'replica', within: 60 }],
  },
  {
    name: 'left-unvouched',
    sentence: 'A message leaves at once, and is compared afterwards.',
    edits: [
      edit(
        OUTGOING,
        '    this.compare();\n    return request;',
        '    const first = this.pending.peek();\n    if (first !== undefined && this.pending.size === 1) this.pml.isend(rank, ctx, tag, buffer, sync);\n    this.compare();\n    return request;',
      ),
    ],
    found: [{ profile: 'replica', within: 60 }],
  },
  {
    name: 'alone-still-waits',
    sentence: 'What a lead has begun when its shadow dies waits for the word of the shadow.',
    edits: [edit(OUTGOING, 'this.lookAtOutvoted();\n    this.compare();\n', 'this.lookAtOutvoted();\n')],
    found: [{ profile: 'replica', within: 300 }],
  },
  {
    name: 'alone-and-congested',
    sentence: 'A lead whose shadow has died while it was far behind waits for it to catch up.',
    edits: [edit(LEAD, 'for (const { consumed } of this.living)', 'for (const { consumed } of this.links)')],
    found: [{ profile: 'replica', within: 300 }],
  },
  {
    name: 'bursts-merged',
    sentence: 'The shadow takes two bursts at once, with nothing of the program between them.',
    edits: [edit(SHADOW, 'this.tell(own);\n    this.prepareHead();\n', 'this.tell(own);\n    this.turn(call);\n    this.prepareHead();\n')],
    found: [{ profile: 'replica', within: 60 }],
  },
  {
    name: 'looks-uncounted',
    sentence: 'The shadow is not told of looks that found nothing.',
    edits: [edit(LEAD, '    this.vainLooks++;\n', '')],
    found: [{ profile: 'replica', within: 60 }],
  },
  {
    name: 'cancel-untold',
    sentence: 'The shadow is not told whether a receive could be cancelled.',
    edits: [edit(LEAD, '    this.noteLook([isCancelled ? 1 : 0]);\n', '')],
    found: [{ profile: 'replica', within: 60 }],
  },
  {
    name: 'forwarded-by-reference',
    sentence: 'A received message goes to the shadow from the memory of the program, which goes on to use it.',
    edits: [
      edit(
        READY,
        'data = bytesOf(new Iov(inner.buffer.slice(0, receivedBytes)));',
        'data = inner.buffer.views[0].subarray(0, receivedBytes);',
      ),
    ],
    found: [{ profile: 'replica', within: 60 }],
  },
  {
    name: 'probe-without-source',
    sentence: 'The shadow is told that a probe has found a message, and not from whom.',
    edits: [
      edit(
        READY,
        'ended = { ...ended, source, tag, seq, signature, bytes: messageBytes };',
        'ended = { ...ended, source: Math.min(source, 0), tag, seq, signature, bytes: messageBytes };',
      ),
    ],
    found: [{ profile: 'replica', within: 60 }],
  },
  {
    name: 'deadline-of-its-own',
    sentence: 'The shadow is not told that a blocking call has come to the end of its time.',
    edits: [edit(LEAD, '    this.say().over(call);\n', '')],
    found: [{ profile: 'replica', within: 60 }],
  },
  {
    name: 'timer-of-its-own',
    sentence: 'A timer of the shadow ends its receive, whatever the lead does.',
    edits: [
      edit(
        SHADOW,
        '  expire(request: RecvRequest, error: MultirailError): void {\n',
        '  expire(request: RecvRequest, error: MultirailError): void {\n    for (const own of this.open.values()) {\n      if (own.request !== request) continue;\n      this.open.delete(own.number);\n      request.error = error;\n      request.done = true;\n    }\n',
      ),
    ],
    found: [{ profile: 'replica', within: 60 }],
  },
  {
    name: 'minority-sent',
    sentence: 'Both shadows have another message than the lead, and that of the lead leaves.',
    edits: [
      edit(
        OUTGOING,
        "message.state = moveMessage(message.state, 'OUTVOTED');",
        'this.pending.shift();\n    return this.transmit(message);',
      ),
    ],
    found: [{ profile: 'replica', within: 300 }],
  },
  {
    name: 'vote-with-a-word-missing',
    sentence: 'Of two shadows the first word is enough.',
    edits: [
      edit(
        OUTGOING,
        'for (const { words } of this.living) if (words.peek()?.digest === undefined) return undefined;\n    return this.living.map(',
        'const here = this.living.filter(({ words }) => words.peek()?.digest !== undefined);\n    if (here.length === 0) return undefined;\n    return here.map(',
      ),
    ],
    found: [{ profile: 'replica', within: 60 }],
  },
  {
    name: 'course-kept',
    sentence: 'A shadow whose message goes elsewhere is outvoted, and not told to leave.',
    edits: [
      edit(
        OUTGOING,
        "if (loser !== undefined && loser.difference !== 'digest' && link !== undefined)\n      this.part(",
        'if (false as boolean)\n      this.part(link as Link, ',
      ),
    ],
    found: [{ profile: 'replica', within: 300 }],
  },
  {
    name: 'evidence-unchecked',
    sentence: 'The bytes that a shadow shows are sent, whether they have the digest that two have vouched for or not.',
    edits: [
      edit(
        OUTGOING,
        'if (firstDifference(digest, message.majority as Uint8Array) === -1) this.correct',
        'if (digest.length > 0) this.correct',
      ),
    ],
    found: [{ profile: 'replica', within: 600 }],
  },
  {
    name: 'loser-not-healed',
    sentence: 'A shadow whose result is another one than that of the two others keeps it.',
    edits: [edit(OUTGOING, 'if (message.word.dest === NOBODY && !this.keepRight(message)) return;', '')],
    found: [{ profile: 'replica', within: 300 }],
  },
  {
    name: 'lead-not-healed',
    sentence: 'A lead whose result is another one than that of its shadows keeps it.',
    edits: [
      edit(
        OUTGOING,
        'if (message.word.dest === NOBODY) this.heal(message.own.request as SendRequest, message.buffer, bytes);\n    else ',
        '',
      ),
    ],
    found: [{ profile: 'replica', within: 300 }],
  },
  {
    name: 'both-shadows-lost',
    sentence: 'With one of its shadows a lead forgets the other one, too.',
    edits: [edit(OUTGOING, 'this.living = this.living.filter((other) => other !== link);', 'this.living = [];')],
    found: [{ profile: 'replica', within: 300 }],
  },
  {
    name: 'number-of-a-shadow-shown',
    sentence: 'A program is told the number of the shadow that has the place of a lead, in place of the rank.',
    edits: [edit(LEAD, 'const source = this.rankOf(said.source);', 'const { source } = said;')],
    found: [{ profile: 'replica', within: 300 }],
  },
  {
    name: 'taken-asked-for-again',
    sentence: 'A shadow in the place of its lead asks for all from the first message on that it lacks, and gets some a second time.',
    edits: [
      edit(
        SUCCESSION,
        'taken === undefined ? { nextIn: expectedSeq, holes: [] }',
        'expectedSeq >= 0 ? { nextIn: expectedSeq, holes: [] as number[] }',
      ),
    ],
    found: [{ profile: 'replica', within: 600 }],
  },
  {
    name: 'taken-awaited',
    sentence: 'A shadow in the place of its lead waits for messages that it has received before, behind others that it lacks.',
    edits: [edit(INBOX, '  if (flow.taken !== undefined) passTaken(flow, flow.taken);\n', '')],
    found: [{ profile: 'replica', within: 600 }],
  },
  {
    name: 'probed-counted-as-received',
    sentence: 'What a matched probe has taken, and nobody has received, is not asked for again when the lead dies.',
    edits: [edit(STREAMS, '    flow.probed.set(envelope.seq, envelope);\n', '')],
    found: [{ profile: 'replica', within: 600 }],
  },
  {
    name: 'own-messages-lost',
    sentence: 'What a rank has sent to itself dies with its lead.',
    edits: [edit(TAKEOVERS, '    (this.succession as Succession).sendOwn();\n', '')],
    found: [{ profile: 'replica', within: 300 }],
  },
  {
    name: 'death-heard-from-a-shadow-forgotten',
    sentence: 'A lead that hears of a death by SYNC of the shadow waits for the word of the launcher, and then for another SYNC.',
    edits: [
      edit(TAKEOVERS, 'if (from !== this.numberOf(rank)) this.options.onLeadDead(rank);', 'if (from !== this.numberOf(rank)) return;'),
    ],
    found: [{ profile: 'replica', within: 600 }],
  },
  {
    name: 'time-over-at-nobody',
    sentence: 'A receive whose time came while its lead was dead never ends.',
    edits: [edit(LEAD, '    for (const request of open) this.endExpired(request);\n', '')],
    found: [{ profile: 'replica', within: 2000 }],
  },
  {
    name: 'copies-dropped-too-soon',
    sentence: 'A lead drops all its copies for another one that says what it has received of them.',
    edits: [
      edit(TAKEOVERS, 'dropTaken(this.options.log, from, taken);', 'dropTaken(this.options.log, from, { ...taken, below: undefined });'),
    ],
    found: [{ profile: 'replica', within: 2000 }],
  },
  {
    name: 'envelopes-counted-as-whole',
    sentence: 'A lead without a shadow says that it has messages of which it has the envelope alone.',
    edits: [edit(SUCCESSION, '    for (const envelope of this.waitingOf(peer)) if (!outlivesSender(envelope)) lacks(envelope);\n', '')],
    found: [{ profile: 'replica', from: 41586, within: 41587 }],
  },
  {
    name: 'behind-the-end-unseen',
    sentence: 'A shadow that has come to its end too early waits for the lead, which waits for it to take what has ended.',
    edits: [edit(SHADOW, '    this.lookBehindEnd();\n', '')],
    found: [{ profile: 'replica', from: 26838, within: 26839 }],
  },
];
