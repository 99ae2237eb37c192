// The planted mistakes in the judgement of how good rails are (src/bml/health.ts and its callers) and in the choice between them
// (src/bml/choice.ts): part of table.ts. The bounds of the profile `impaired` (I13 to I15) find them, in its random runs or in a scenario.
// Where the search does not begin at seed 0, the first seed that fails is a little after `from`.
import { edit } from './edit.ts';
import type { Planted } from './table.ts';

const BML_PEER = 'src/bml/peer.ts';
const CHOICE = 'src/bml/choice.ts';
const ENGINE = 'src/progress/engine.ts';
const HEALTH = 'src/bml/health.ts';
const WATCH = 'src/bml/health-watch.ts';

export const PLANTED_HEALTH: readonly Planted[] = [
  {
    name: 'stall-never-left',
    sentence: 'A rail that stalls while a sibling moves is never left.',
    edits: [edit(HEALTH, "if (heldMs >= leaveMs && heldPeerMs >= leaveMs * PEER_PART) return 'leave';", '')],
    found: [{ profile: 'impaired', within: 10 }],
  },
  {
    name: 'sent-not-watched',
    sentence: 'What is sent outside of a turn, as short messages are, is not watched before the next look at anything.',
    edits: [edit(ENGINE, 'this.bml.handleSent(rail, this.nowMs);', '')],
    found: [{ profile: 'impaired', within: 10 }],
  },
  {
    name: 'peer-time-ignored',
    sentence: 'A rail is left without asking whether the peer polled its rails meanwhile.',
    edits: [
      edit(HEALTH, "if (heldMs >= leaveMs && heldPeerMs >= leaveMs * PEER_PART) return 'leave';", "if (heldMs >= leaveMs) return 'leave';"),
    ],
    // Nobody computes in the profile.
    found: [{ scenario: 'impaired: a peer computes, and the rail with the longer round trip is not left for it' }],
  },
  {
    name: 'trusted-at-once',
    sentence: 'A rail that was left carries again as soon as it is back.',
    edits: [
      edit(
        WATCH,
        'if (this.host.options.stallTimeoutMs === 0 || rail.trialMs === 0 || !hasOther(peer, rail)) return this.trust(rail, aliveMs);',
        'if (peer !== undefined) return this.trust(rail, aliveMs);',
      ),
    ],
    found: [{ scenario: 'impaired: a flap of 500 ms for 6 s, with long messages now and then, is left a few times and no more' }],
  },
  {
    name: 'trust-after-one-answer',
    sentence: 'A rail on trial is trusted after the first answer.',
    edits: [edit(HEALTH, 'observed.faultlessMs >= observed.trialMs && observed.answers >= ANSWERS_MIN ?', 'observed.answers >= 1 ?')],
    found: [{ scenario: 'impaired: a flap of 500 ms for 6 s, with long messages now and then, is left a few times and no more' }],
  },
  {
    name: 'trial-not-longer',
    sentence: 'However often a rail is left, its trial is no longer than the first.',
    edits: [edit(HEALTH, 'return Math.min(trialMaxMs, trialMs * TRIAL_GROWTH);', 'return Math.min(trialMaxMs, trialMinMs);')],
    found: [{ scenario: 'impaired: a flap of 500 ms for 6 s, with long messages now and then, is left a few times and no more' }],
  },
  {
    name: 'mark-moves-on',
    sentence: 'What a rail holds is marked again at each look, so that nothing is ever late.',
    edits: [edit(WATCH, 'else if (rail.markAliveMs < 0) this.mark(peer, rail, aliveMs);', 'else this.mark(peer, rail, aliveMs);')],
    found: [{ profile: 'impaired', within: 10 }],
  },
  {
    name: 'mark-not-renewed',
    sentence: 'The mark stays where it was when what was marked has been delivered and more is under way.',
    edits: [
      edit(
        WATCH,
        'if (rail.endpoint.outstandingBytes > 0) this.mark(this.host.peerOf(rail), rail, aliveMs);\n    else rail.markAliveMs = -1;',
        'if (rail.endpoint.outstandingBytes === 0) rail.markAliveMs = -1;',
      ),
    ],
    found: [{ profile: 'impaired', from: 330, within: 340 }],
  },
  {
    name: 'late-rail-first',
    sentence: 'Rails that are late carry, and come before those that are not.',
    edits: [
      edit(
        BML_PEER,
        "let usable = this.rails.filter((rail) => rail.state === 'UP');",
        "let usable = this.rails.filter((rail) => rail.state === 'SUSPECT');\n    if (usable.length === 0) usable = this.rails.filter((rail) => rail.state === 'UP');",
      ),
    ],
    found: [{ profile: 'impaired', within: 10 }],
  },
  {
    name: 'trial-carries',
    sentence: 'A rail on trial carries beside the others.',
    edits: [
      edit(
        BML_PEER,
        "let usable = this.rails.filter((rail) => rail.state === 'UP');",
        "let usable = this.rails.filter((rail) => rail.state === 'UP' || rail.state === 'TRIAL');",
      ),
    ],
    found: [{ profile: 'impaired', from: 50, within: 60 }],
  },
  {
    name: 'probes-unpadded',
    sentence: 'The probes of a trial are of a few bytes.',
    edits: [edit(WATCH, 'rail.endpoint.probe(rail.paddedProbeId, rail.paddedBytes);', 'rail.endpoint.probe(rail.paddedProbeId);')],
    // Rare in the profile, where rails are seldom slow for so long: seed 5030 is its first.
    found: [{ scenario: 'impaired: a rate that falls to 64 kbit/s for 8 s is not trusted for its answers to a few bytes' }],
  },
  {
    name: 'siblings-not-asked',
    sentence: 'Siblings that have nothing to carry are not asked, so nobody knows that they move.',
    edits: [edit(WATCH, 'if (heldMs >= askAfterMs) host.askSiblings(peer, aliveMs, ASK_APART_MS);', '')],
    found: [{ profile: 'impaired', from: 10, within: 20 }],
  },
  {
    name: 'idle-rate-believed',
    sentence: 'The rate of a sibling that was never kept full is taken for what it can carry.',
    edits: [edit(WATCH, 'let rate = rateOf(sibling);', 'let rate = Math.max(1, sibling.rate);')],
    found: [{ profile: 'impaired', within: 10 }],
  },
  {
    name: 'slow-always-worth',
    sentence: 'A slow rail takes whatever it has room for, whether or not the faster ones would have everything through sooner.',
    edits: [edit(CHOICE, 'return rate === 0 || ownMs <= queuedBytes / rate + delayMs + SOON_MS;', 'return true;')],
    found: [{ scenario: 'impaired: a rail of 2 Mbit/s takes nothing that one of 100 Mbit/s has through sooner' }],
  },
  {
    name: 'late-waited-for',
    sentence: 'A faster rail is waited for though what it holds is late.',
    edits: [
      edit(
        CHOICE,
        'if (otherRate < fasterThan || !other.isKnown || heldOf(other, aliveMs) > usualMaxMs(other.usual) + LATE_MS) continue;',
        'if (otherRate < fasterThan || !other.isKnown) continue;',
      ),
    ],
    found: [{ scenario: 'impaired: a faster rail that has just gone dark is not waited for' }],
  },
];
