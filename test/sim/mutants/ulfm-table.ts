// The planted mistakes in failures, revocation and agreement (src/ulfm): part of table.ts. The random runs of the profile `ulfm` find them.
// Where the search does not begin at seed 0, the first seed that fails is a little after `from`.
import { edit } from './edit.ts';
import type { Planted } from './table.ts';

const AGREEMENT = 'src/ulfm/agreement.ts';
const COMMUNICATOR = 'src/ulfm/communicator.ts';
const FACE = 'src/ulfm/ulfm.ts';
const REPLACE = 'src/ulfm/replace.ts';
const STANDBYS = 'src/ulfm/standbys.ts';
const JOINS = 'src/ulfm/join-series.ts';
const KNOWLEDGE = 'src/ulfm/knowledge.ts';
const VALUES = 'src/ulfm/values.ts';
const REVOKE = 'src/ulfm/revoke.ts';
const REVOKED = 'src/pml/revoked.ts';
const RECEIVER = 'src/pml/receiver.ts';
const INBOX = 'src/pml/inbox.ts';

export const PLANTED_ULFM: readonly Planted[] = [
  {
    name: 'decide-without-acks',
    sentence: 'A leader decides as soon as it has proposed, without waiting for an ACK.',
    edits: [
      edit(
        AGREEMENT,
        "if (this.state === 'PROPOSING' && this.missing(this.needed(), this.acks).length === 0)",
        "if (this.state === 'PROPOSING')",
      ),
    ],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'locks-ignored',
    sentence: 'A new leader makes a value of its own whatever is locked.',
    edits: [edit(AGREEMENT, 'const held = led.lock;', 'const held = undefined as Lock | undefined;')],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'decided-stays-silent',
    sentence: 'A member that has decided says nothing to a new leader, nor to those that ask.',
    edits: [
      edit(AGREEMENT, 'if (hasChanged) this.tell([leader]);', ''),
      edit(AGREEMENT, "if (this.state === 'DECIDED') return this.answer(gathered.covers);", "if (this.state === 'DECIDED') return;"),
    ],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'flood-not-passed-on',
    sentence: 'A process that hears of a death tells nobody.',
    edits: [edit(FACE, 'this.postFailed(this.knowledge.neighbours, notice);', 'this.postFailed([], notice);')],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'tree-not-left',
    sentence: 'The tree stays in use when a node of it is dead.',
    edits: [edit(AGREEMENT, 'else this.passTreeBy();', '')],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'old-view-accepted',
    sentence: 'A PROPOSE of a leader that is known to be gone is locked.',
    edits: [
      edit(
        AGREEMENT,
        "if (view !== this.leader || view === this.roll.self || (this.state !== 'STATED' && this.state !== 'LOCKED')) {",
        "if (view === this.roll.self || (this.state !== 'STATED' && this.state !== 'LOCKED')) {",
      ),
      edit(
        FACE,
        'if (this.ownDeath !== undefined || this.knowledge.isGone(source)) return;\n    this.take(source, bytes);\n    this.settle();',
        'if (this.ownDeath !== undefined) return;\n    this.take(source, bytes);\n    this.settle();',
      ),
    ],
    found: [{ profile: 'ulfm', within: 800 }],
  },
  {
    name: 'acknowledged-not-intersected',
    sentence: 'What one member has acknowledged counts as acknowledged by all.',
    edits: [edit(VALUES, 'this.acked.keepOnly(other.acked);', '')],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'flag-of-the-leader',
    sentence: 'The flags that come up the tree are not put together.',
    edits: [edit(VALUES, 'this.flag = (this.flag & other.flag) >>> 0;', '')],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'first-leader-for-good',
    sentence: 'The lowest rank leads, whether it lives or not.',
    edits: [
      edit(
        AGREEMENT,
        'while (rank !== roll.self && (roll.gone.has(rank) || base.has(rank))) rank++;',
        'while (rank !== roll.self && base.has(rank)) rank++;',
      ),
    ],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'decision-forgotten-early',
    sentence: 'A decision is forgotten as soon as it is there, before everybody has it.',
    edits: [edit(COMMUNICATOR, 'this.forgetBelow(series, agreement.q);', 'this.forgetBelow(series, agreement.q + 1);')],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'joined-without-all',
    sentence: 'A communicator with successors is handed out although one of them has died, or cannot come.',
    edits: [edit(REPLACE, 'return failed.count === 0 && acked.count === acked.size;', 'return failed.count >= 0 && acked.size > 0;')],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'called-in-not-asked',
    sentence: 'A standby that an attempt has called in which failed is not called again before the word has come that it waits.',
    edits: [edit(STANDBYS, '[...this.ready, ...this.livingOf(this.called)]', '[...this.ready]')],
    found: [{ profile: 'ulfm', from: 1810, within: 1820 }],
  },
  {
    name: 'two-places',
    sentence: 'A standby that has accepted a call accepts the next one, too.',
    edits: [edit(REPLACE, "(this.state === 'CALLED' && isNext)", "this.state === 'CALLED'")],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'number-given-twice',
    sentence: 'A process that joins gets the number of one that is dead.',
    edits: [edit(JOINS, 'return this.next++;', 'return this.over.size > 0 ? ([...this.over][0] as number) : this.next++;')],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'joined-unknown-to-one',
    sentence: 'A process that has joined stands by although one that lives has not heard of it.',
    edits: [edit(JOINS, 'if (this.unheard.get(number)?.size !== 0) return;', 'if ((this.unheard.get(number)?.size ?? 9) > 1) return;')],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'newcomer-takes-the-dead-for-alive',
    sentence: 'A process that joins is not told who has died before it came.',
    edits: [edit(KNOWLEDGE, 'if (notice.number === this.self || this.failures.has(notice.number)) return;', 'return;')],
    found: [{ profile: 'ulfm', from: 570, within: 600 }],
  },
  {
    name: 'newcomer-missed-by-the-flood',
    sentence:
      'A process that joins is not told of a death which the server did not know when it came, and which went round before others knew of it.',
    edits: [edit(FACE, 'if (isNew) for (const notice of knowledge.newsFor(number)) this.postFailed([number], notice);', 'void isNew;')],
    found: [{ profile: 'ulfm', from: 50_295, within: 50_296 }],
  },
  {
    name: 'waits-by-own-word',
    sentence: 'Where too few stand by, a member waits for more if it wants to, whatever was decided.',
    edits: [edit(REPLACE, '(value.flag & AWAITS) !== 0', 'host.awaitsStandbys(id)')],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'failed-by-own-knowledge',
    sentence: 'A decision that is handed out names those whom its process knows to be dead, not those that were decided.',
    edits: [
      edit(
        FACE,
        'const decision = { id, series, q, value: value as Value };',
        'const decision = { id, series, q, value: { ...(value as Value), failed: this.communicator(id).roll.dead.clone() } };',
      ),
    ],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'own-death-unheard',
    sentence: 'A process that was declared dead and lives goes on.',
    edits: [edit(FACE, "if (outcome === 'own death') this.end();", "if (outcome === 'own death') this.knowledge.ownDeath = undefined;")],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'early-messages-dropped',
    sentence: 'What others say on a communicator before this process has it is dropped.',
    edits: [edit(FACE, 'if (!this.options.isCreating()) return this.ignore();', 'return this.ignore();')],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'revoke-not-forwarded',
    sentence: 'A process that hears of a revocation tells nobody.',
    edits: [
      edit(
        FACE,
        'this.revokeHere(communicator);\n    // A successor',
        'if (!revocation.isRevoked) this.revocations.push(id);\n    revocation.isRevoked = true;\n    // A successor',
      ),
    ],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'revoke-ring-not-mended',
    sentence: 'Nobody tells those of a revocation who would have heard it from a process that is gone.',
    edits: [edit(REVOKE, 'if (!this.isRevoked || living.length < 2) return [];', 'return [];')],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'revoke-unanswered',
    sentence: 'A process that hears of a revocation does not say so to those that had a rendezvous with it.',
    edits: [edit(REVOKE, 'if (!mustAnswer || this.told.has(rank)) return false;', 'return false;')],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'revoke-ends-sends-at-once',
    sentence: 'A rendezvous send gives its buffer back as soon as its communicator is revoked here.',
    edits: [
      edit(
        REVOKED,
        'request.isForsaken = true;',
        'request.isForsaken = true;\n      message.request = undefined;\n      core.complete(request);',
      ),
    ],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'revoke-ends-receives-at-once',
    sentence: 'A receive of a revoked communicator gives its buffer back while its sender may write there.',
    edits: [
      edit(
        RECEIVER,
        "if (message.state !== 'RECEIVING' || message.offers.windows.length > 0) return;",
        'message.request = undefined;\n    this.core.complete(request);\n    return;',
      ),
    ],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'revoke-leaves-receives',
    sentence: 'Receives that wait for a message stay posted when their communicator is revoked.',
    edits: [
      edit(
        INBOX,
        'if (error === undefined) return;\n    for (const request of context.postedRequests()) {',
        'return;\n    for (const request of context.postedRequests()) {',
      ),
    ],
    found: [{ profile: 'ulfm', within: 400 }],
  },
  {
    name: 'revoked-not-answered',
    sentence: 'A rendezvous that nobody receives any more, since its communicator is revoked, is not answered.',
    edits: [edit(INBOX, 'if (envelope.type !== PACKET.MATCH) this.receiver.discard(envelope);', '')],
    found: [{ profile: 'ulfm', within: 400 }],
  },
];
