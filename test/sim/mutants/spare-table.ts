// The planted mistakes in rails that are made on demand (src/bml/spares.ts): part of table.ts. The random runs of the profile `meet` and the
// scenarios of steady rails find them.
import { edit } from './edit.ts';
import type { Planted } from './table.ts';

const BML = 'src/bml/bml.ts';
const SPARES = 'src/bml/spares.ts';

export const PLANTED_SPARES: readonly Planted[] = [
  {
    name: 'spares-not-released',
    sentence: 'Spare rails stay on demand, whatever becomes of the steady one.',
    edits: [edit(SPARES, 'if (this.release(peer, nowMs) && peer.rank < this.host.options.rank) peer.mustAsk = true;', '')],
    found: [{ profile: 'meet', within: 40 }],
  },
  {
    name: 'spares-at-once',
    sentence: 'Spare rails are made with the others.',
    edits: [edit(SPARES, "for (const spare of peer.spares) spare.state = 'ON_DEMAND';", '')],
    found: [{ profile: 'meet', within: 40 }],
  },
  {
    name: 'first-attempts-ignored',
    sentence: 'Attempts to connect the steady rail that fail do not make the spare ones.',
    edits: [edit(BML, 'this.spares.attemptFailed(this.peer(rail), rail, reason, nowMs);', '')],
    found: [{ profile: 'meet', within: 40 }],
  },
  {
    name: 'loss-waits-for-attempts',
    sentence: 'When the steady rail is lost, the spare ones are made only once it could not be connected again.',
    edits: [edit(BML, 'this.spares.lost(this.peer(rail), rail, this.nowMs);', '')],
    found: [{ scenario: 'steady: the rail in memory is gone in the midst of messages, and all arrive over the spare ones at once' }],
  },
  {
    name: 'need-not-asked',
    sentence: 'A higher rank whose steady rail is lost does not ask for the spare ones.',
    edits: [
      edit(
        SPARES,
        'if (this.release(peer, nowMs) && peer.rank < this.host.options.rank) peer.mustAsk = true;',
        'this.release(peer, nowMs);',
      ),
    ],
    found: [{ scenario: 'steady: the higher rank alone finds out, and the lower one has nothing to send' }],
  },
  {
    name: 'question-not-heard',
    sentence: 'A rank that is asked over a spare rail dials what it would have dialled anyway.',
    edits: [edit(BML, 'this.spares.asked(peer, over, nowMs);', '')],
    found: [{ scenario: 'steady: the higher rank alone finds out, and the lower one has nothing to send' }],
  },
  {
    name: 'computing-peer-given-up',
    sentence: 'The spare rails are made as soon as a process does not answer the first attempt.',
    edits: [edit(SPARES, 'const ATTEMPTS_MAX = 3;', 'const ATTEMPTS_MAX = 1;')],
    found: [{ scenario: 'steady: a peer that computes at the first contact needs no spare rail' }],
  },
];
