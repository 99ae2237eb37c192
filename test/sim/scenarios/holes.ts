// The 22 holes that a review found in an earlier text of the protocol, each as the sequence that fell into it. Holes 1 to 11
// here, 12 to 22 in holes-more.ts.
import { PACKET } from '../../../src/pml/hdr.ts';
import { ANY } from '../../../src/pml/match.ts';
import { cutAgain, cutAt, Scenario, type ScenarioCase, scenarioRails } from '../../../tools/sim/scenario.ts';
import { sandwich, transferRails } from './bfo-rows.ts';
import { traffic } from './bfo-rows-more.ts';

const LONG = 6000;

function* hole1(): Iterable<ScenarioCase> {
  for (const liveness of ['self', 'siblings'] as const) {
    for (const rails of [1, 2, 3]) {
      for (const busy of [0, 1]) {
        yield {
          name: `hole 1 a rank that computes for ten rail timeouts under full load loses no rail (liveness ${liveness}, ${rails} rails, rank ${busy} busy)`,
          run(lab) {
            const s = new Scenario(lab, { rails: scenarioRails(rails, { liveness }) });
            for (let i = 0; i < 30; i++) traffic(s, 1, [20_000]);
            s.run(2);
            s.fabric.pause(busy);
            s.run(10 * 400);
            const unfinished = s.world.oracle.unfinished().length;
            s.require('it was busy in the middle of the traffic', () => unfinished > 0);
            const lostWhileBusy = s.railsLost;
            s.fabric.resume(busy);
            s.world.mustFinish(60_000);
            const { railsLost } = s;
            // Rails that only their siblings can judge are dialled anew beside the silent epoch, and the answer of a rank that is
            // back ends that epoch (B7): at most once, and never while it is busy.
            const most = liveness === 'self' ? 0 : 2 * rails;
            s.require('no storm of lost rails', () => lostWhileBusy === 0 && railsLost <= most);
            s.finish();
          },
        };
      }
    }
  }
}

function* hole2(): Iterable<ScenarioCase> {
  for (let seed = 1; seed <= 6; seed++) {
    yield {
      name: `hole 2 what the transport took and no turn has handed up is not delivered: RAILDOWN comes first over another rail (draw ${seed})`,
      run(lab) {
        const s = new Scenario(lab, { seed, rails: scenarioRails(2) });
        s.recv(1000);
        s.recv(LONG);
        s.fabric.pause(1);
        const arrived = s.whenever({ stage: 'arrive', type: PACKET.MATCH, linkNo: 0 }, () => 'pass');
        s.send(1000);
        s.run(5);
        // Only the sender finds out; its word goes over the other rail.
        s.fabric.onlyOtherSideNotices(s.link(0), 1);
        s.fabric.cut(s.link(0));
        s.run(30);
        s.require('the message lay unread', () => arrived.hits > 0);
        s.requireCount('envelopesResent');
        s.requireLost();
        s.send(LONG);
        s.fabric.resume(1);
        s.finish();
      },
    };
  }
}

function* hole3(): Iterable<ScenarioCase> {
  for (const rails of [1, 2, 3]) {
    for (const counts of ['reported', 'not reported until BYE'] as const) {
      yield {
        name: `hole 3 the receiver leaves as soon as it has everything, the last counts ${counts}: no send fails, no rail is lost (${rails} rails)`,
        run(lab) {
          const s = new Scenario(lab, { rails: scenarioRails(rails) });
          const receives = [s.recv(LONG), s.recv(500)];
          s.send(LONG);
          const last = s.send(500);
          s.until('the receiver has everything', () => receives.every(({ done }) => done));
          if (counts !== 'reported') {
            for (const link of s.fabric.links()) s.fabric.dropCounts(link, 1);
            s.whenever({ stage: 'leave', kind: 'bye', from: 1 }, ({ link }) => {
              s.fabric.dropCounts(link, 1, false);
              return 'pass';
            });
          }
          s.world.processes[1].engine.beginFinalize();
          s.run(counts === 'reported' ? 50 : 5);
          s.require('no send failed', () => last.request?.error === undefined && last.done);
          s.require('no rail was lost', () => s.railsLost === 0);
          s.require('nobody failed', () => s.world.processes.every(({ peerFailures }) => peerFailures.length === 0));
          s.finish();
        },
      };
    }
  }
}

function* hole4(): Iterable<ScenarioCase> {
  for (const rails of [1, 2, 3]) {
    for (const bytes of [0, 600, 3000]) {
      yield {
        name: `hole 4 1000 sends with tag 1, then one with tag 2, which is received first (${bytes} bytes each, ${rails} rails)`,
        run(lab) {
          const s = new Scenario(lab, { rails: scenarioRails(rails), params: { pml_unexpected_bytes_max: '65536' } });
          for (let i = 0; i < 1000; i++) s.send(bytes, 1);
          s.send(bytes, 2);
          // Another communicator is not blocked by the flood either.
          s.send(bytes, 5, 0, 1, false, 7);
          const first = s.recv(bytes, 2);
          const other = s.recv(bytes, 5, 1, 0, 7);
          s.until('the later tag and the other context were received', () => first.done && other.done);
          if (bytes > 0) s.requireCount('creditStalls', bytes < 1024 ? 1 : 0);
          for (let i = 0; i < 1000; i++) s.recv(bytes, i % 2 === 0 ? 1 : ANY);
          s.finish();
        },
      };
    }
  }
  yield {
    name: 'hole 4 the same flood while rails are lost',
    run(lab) {
      const s = new Scenario(lab, { rails: scenarioRails(3), params: { pml_unexpected_bytes_max: '65536' } });
      cutAt(s, PACKET.MATCH, 'arrived', {}, 30);
      cutAt(s, PACKET.RNDV, 'not arrived', {}, 40);
      for (let i = 0; i < 1000; i++) s.send(600, 1);
      s.send(600, 2);
      const first = s.recv(600, 2);
      s.until('the later tag was received', () => first.done);
      for (let i = 0; i < 1000; i++) s.recv(600, 1);
      s.finish();
    },
  };
}

/** 64 KiB of credit, all taken by messages that nobody wants yet. */
function flood(s: Scenario): void {
  for (let i = 0; i < 120; i++) s.send(900, 1);
}
const NARROW = { pml_unexpected_bytes_max: '65536' };

function* hole5(): Iterable<ScenarioCase> {
  for (const fate of ['not arrived', 'arrived'] as const) {
    yield {
      name: `hole 5 a CREDIT is in doubt (${fate}): the limit is absolute, so it is neither lost nor paid twice`,
      run(lab) {
        const s = new Scenario(lab, { rails: scenarioRails(2), params: NARROW });
        cutAt(s, PACKET.CREDIT, fate);
        flood(s);
        s.run(30);
        for (let i = 0; i < 120; i++) s.recv(900, 1);
        s.until('all was received', () => s.world.oracle.unfinished().length === 0);
        const stalls = s.count('creditStalls');
        // With the credit back, eager again.
        for (let i = 0; i < 40; i++) {
          s.recv(900, 1);
          s.send(900, 1);
        }
        s.world.mustFinish(60_000);
        s.require('stalled at first, and not afterwards', () => stalls > 0 && s.count('creditStalls') === stalls);
        s.finish();
      },
    };
    yield {
      name: `hole 5 the message that took the last credit is in doubt (${fate}): sent again without credit, returned once`,
      run(lab) {
        const s = new Scenario(lab, { rails: scenarioRails(2), params: NARROW });
        // 65536 bytes hold 63 messages of 900 bytes with their charge of 128.
        cutAt(s, PACKET.MATCH, fate, {}, 63);
        flood(s);
        s.run(30);
        s.requireCount('envelopesResent');
        if (fate === 'arrived') s.requireCount('envelopeDuplicates');
        for (let i = 0; i < 120; i++) s.recv(900, 1);
        s.world.mustFinish(60_000);
        s.until('nothing is held', () => s.pml(1).peer(0).heldBytes === 0);
        const { creditUsed } = s.pml(0).peer(1);
        s.require('every charge was given back once', () => s.pml(1).peer(0).releasedBytes === creditUsed);
        s.finish();
      },
    };
  }
}

function* hole6(): Iterable<ScenarioCase> {
  for (const rails of [1, 2, 3]) {
    yield {
      name: `hole 6 out of reach for the peer timeout: failed for ever and for both, although the rails return (${rails} rails)`,
      run(lab) {
        const s = new Scenario(lab, { rails: scenarioRails(rails), params: { pml_peer_timeout_ms: '2000', bml_redial_max_ms: '100' } });
        const sent = [s.send(900), s.send(LONG)];
        const received = s.recv(LONG, 0, 0, 1);
        s.run(1);
        for (const link of s.fabric.links()) s.fabric.cut(link);
        // Only rank 0 runs into the timeout: the other one gets no turn meanwhile.
        s.fabric.pause(1);
        s.run(4000);
        s.fabric.resume(1);
        for (const link of s.fabric.links()) s.fabric.mend(link);
        const theirs = s.recv(LONG);
        s.run(3000);
        const codes = s.world.processes.map(({ peerFailures }) => peerFailures[0]?.error.code);
        s.require('rank 0 gave up the other', () => codes[0] === 'ERR_PROC_UNREACHABLE');
        s.require('rank 1 was told', () => codes[1] !== undefined);
        s.require('requests ended on both sides', () => received.done && theirs.done && sent.every(({ done }) => done));
        // What had come of the second message is disposed of by its receive, which ends with the error too.
        s.recv(LONG);
        const late = s.send(100);
        s.run(100);
        s.require('a later send ends with the same error', () => late.request?.error !== undefined);
        s.requireLost();
        s.finish();
      },
    };
  }
  yield {
    name: 'hole 6 a newer process of the same rank appears: the older one is dead, and is refused from then on',
    run(lab) {
      const s = new Scenario(lab, { rails: scenarioRails(2) });
      s.recv(LONG);
      s.send(LONG);
      s.run(1);
      s.world.expectDeath(1, 0);
      const link = s.link(0);
      const hello = { rank: 0, incarnation: 2, rail: 0, key: 'sim0', epoch: 1 };
      link.from(0).push({ conn: null, bytes: 128, capture: () => ({ kind: 'hello', epoch: 1, hello, jobId: 'sim', secret: undefined }) });
      s.run(3000);
      const [older, other] = s.world.processes;
      s.require('the peer took the older process for dead', () => other.peerFailures[0]?.error.code === 'ERR_PROC_FAILED');
      s.require('the older process was told', () => older.peerFailures[0]?.error.code === 'ERR_PROC_FAILED');
      s.finish();
    },
  };
  yield {
    name: 'hole 6 an older process of the same rank calls late: it is refused and changes nothing',
    run(lab) {
      const s = new Scenario(lab, { rails: scenarioRails(2) });
      s.recv(LONG);
      s.send(LONG);
      s.run(1);
      let refused = 0;
      s.whenever({ stage: 'arrive', kind: 'helloRefused', from: 1 }, () => {
        refused++;
        return 'pass';
      });
      const hello = { rank: 0, incarnation: 0, rail: 0, key: 'sim0', epoch: 9 };
      s.link(0)
        .from(0)
        .push({ conn: null, bytes: 128, capture: () => ({ kind: 'hello', epoch: 9, hello, jobId: 'sim', secret: undefined }) });
      s.run(100);
      s.require('it was refused', () => refused > 0);
      s.require('nobody failed', () => s.world.processes.every(({ peerFailures }) => peerFailures.length === 0));
      s.finish();
    },
  };
  for (const host of ['up', 'down'] as const) {
    for (const dead of [0, 1]) {
      yield {
        name: `hole 6 rank ${dead} is killed in the middle of a message, its host ${host}: the launcher's word ends every request`,
        run(lab) {
          const s = new Scenario(lab, { ranks: 3, rails: scenarioRails(2) });
          const alive = 1 - dead;
          s.recv(4 * LONG, 0, 1, 0);
          s.send(4 * LONG, 0, 0, 1);
          const posted = s.recv(100, 3, alive, dead);
          s.run(2);
          s.world.kill(dead, host);
          const eager = s.send(100, 9, alive, dead);
          s.run(300);
          s.world.tellFailed(alive, dead);
          s.world.tellFailed(2, dead);
          s.run(50);
          s.require('the posted receive ended with an error', () => posted.request?.error?.code === 'ERR_PROC_FAILED');
          s.require('the eager message counts as lost', () => eager.done && s.world.processes[alive].peerFailures[0]?.lost === 1);
          // The two that are left talk on.
          s.recv(LONG, 0, 2, alive);
          s.send(LONG, 0, alive, 2);
          s.run(500);
          s.finish();
        },
      };
    }
  }
}

/** A peer dies while a message with it is in one of the states of a recovery. */
function* death(): Iterable<ScenarioCase> {
  const cases = [
    { state: 'DRAINING', transfer: 'put', dead: 1, what: 'put' },
    { state: 'READING', transfer: 'get', dead: 0, what: 'getData' },
    { state: 'FENCING', transfer: 'get', dead: 0, what: 'getData' },
  ] as const;
  for (const { state, transfer, dead, what } of cases) {
    yield {
      name: `hole 6 the peer dies while a message is ${state}`,
      run(lab) {
        const s = new Scenario(lab, { rails: transferRails(3, transfer) });
        const alive = 1 - dead;
        // One rail is lost in the middle of the data, another one stands still with its share, the third carries the recovery.
        const begun = s.on(
          { stage: 'arrive', kind: what, linkNo: 0 },
          ({ link }) => {
            if (state !== 'READING') s.fabric.cut(link);
            s.fabric.stall(s.link(2), 0, 300_000);
            s.fabric.stall(s.link(2), 1, 300_000);
            return 'pass';
          },
          2,
        );
        sandwich(s, 8 * LONG);
        const { core } = s.pml(alive).internals;
        s.until(
          `a message is ${state}`,
          () => begun.hits >= 2 && [...core.sends.values(), ...core.recvs.values()].some((message) => message.state === state),
        );
        s.world.kill(dead);
        s.world.tellFailed(alive, dead);
        s.run(600);
        s.finish();
      },
    };
  }
}

/** As the oracle's: what a dead process would have received does not matter. */
function* hole7(): Iterable<ScenarioCase> {
  for (const rails of [3, 5]) {
    for (const transfer of ['copy', 'put'] as const) {
      yield {
        name: `hole 7 two RESTARTACKs of one epoch: the second one is not obeyed (${transfer}, ${rails} rails)`,
        run(lab) {
          const s = new Scenario(lab, { rails: transferRails(rails, transfer) });
          if (transfer === 'copy') cutAt(s, PACKET.FRAG, 'half arrived', {}, 10);
          else cutAt(s, 'put', 'half arrived', {}, 10);
          // The answer arrives, its count does not, and no fragment tells the receiver in time: it answers again.
          s.on({ stage: 'arrive', type: PACKET.RNDVRESTARTACK }, ({ link }) => {
            s.fabric.cut(link);
            for (const each of s.fabric.links()) if (each !== link) s.fabric.stall(each, 0, 20_000);
            return 'pass';
          });
          const answers = s.whenever({ stage: 'arrive', type: PACKET.RNDVRESTARTACK }, () => 'pass');
          s.require('two answers came', () => answers.hits >= 2);
          s.requireCount('controlStale');
          sandwich(s, 4 * LONG);
          s.finish();
        },
      };
    }
  }
}

function* hole8(): Iterable<ScenarioCase> {
  for (const rails of [3, 5]) {
    for (const lateMs of [5, 30]) {
      yield {
        name: `hole 8 a fragment is half received on a living rail while the message restarts over another one (${rails} rails, ${lateMs} ms late)`,
        run(lab) {
          // Which rails carry what is given.
          const s = new Scenario(lab, { rails: scenarioRails(rails), params: { bml_stall_timeout_ms: '0' } });
          // Rail 2 stops in the middle of a fragment and goes on later; it is slow, not dead.
          let held = -1;
          s.on(
            { stage: 'leave', type: PACKET.FRAG, piece: 'inner', linkNo: 2 },
            ({ link }) => {
              held = s.world.nowMs;
              s.fabric.stall(link, 0, lateMs * 1000);
              return 'pass';
            },
            3,
          );
          cutAt(s, PACKET.FRAG, 'not arrived', { linkNo: 0 });
          let openAtNotify = 0;
          s.on({ stage: 'arrive', type: PACKET.RNDVRESTARTNOTIFY }, () => {
            for (const message of s.pml(1).internals.core.recvs.values()) openAtNotify += message.openSinks.size;
            return 'pass';
          });
          sandwich(s, LONG);
          s.until('the message is complete', () => s.world.oracle.unfinished().length === 0);
          s.require('a fragment was half received when NOTIFY came', () => held >= 0 && openAtNotify > 0);
          s.run(100);
          s.requireCount('restarts');
          s.finish();
        },
      };
    }
  }
}

function* hole9(): Iterable<ScenarioCase> {
  for (const side of ['receiver', 'sender'] as const) {
    for (const rails of [2, 3]) {
      yield {
        name: `hole 9 only the ${side} sees a rail die, and its RAILDOWN is lost with the next one (${rails} rails)`,
        run(lab) {
          const s = new Scenario(lab, { rails: scenarioRails(rails) });
          const blind = side === 'receiver' ? 0 : 1;
          s.fabric.onlyOtherSideNotices(s.link(0), blind);
          cutAt(s, PACKET.FRAG, 'not arrived', { linkNo: 0 });
          cutAt(s, PACKET.RAILDOWN, 'not arrived', { from: 1 - blind });
          if (rails === 2)
            s.whenever({ type: PACKET.RAILDOWN }, () => {
              s.fabric.at(s.fabric.nowUs + 40_000, () => s.fabric.mend(s.link(1)));
              return 'pass';
            });
          const told = s.whenever({ stage: 'arrive', type: PACKET.RAILDOWN, from: 1 - blind }, () => 'pass');
          s.require('RAILDOWN was sent again', () => told.hits >= 2);
          sandwich(s, LONG);
          s.finish();
        },
      };
    }
  }
}

function* hole10(): Iterable<ScenarioCase> {
  for (const type of [PACKET.RNDVRESTARTNOTIFY, PACKET.RAILDOWN] as const) {
    yield {
      name: `hole 10 a late ${type === PACKET.RAILDOWN ? 'RAILDOWN' : 'NOTIFY'} names epoch 1 of a rail that is back with epoch 2: that one lives on`,
      run(lab) {
        const s = new Scenario(lab, {
          rails: scenarioRails(2),
          // The rail comes back at once: a trial would outlast what is told late.
          params: { bml_redial_min_ms: '1', bml_redial_max_ms: '2', bml_connect_timeout_ms: '20', bml_stall_timeout_ms: '0' },
        });
        cutAt(s, PACKET.FRAG, 'not arrived', { linkNo: 0 }, 2);
        // It travels over rail 1, which from then on takes 200 ms; rail 0 is back long before.
        s.on({ stage: 'leave', type, linkNo: 1 }, ({ link }) => {
          s.fabric.mend(s.link(0));
          for (const rank of [0, 1]) s.fabric.skew(link, rank, 200_000);
          return 'pass';
        });
        let epochWhenItCame = 0;
        s.on({ stage: 'arrive', type, linkNo: 1 }, ({ to }) => {
          epochWhenItCame = s.world.processes[to].engine.bml.peers.get(1 - to)?.rails[0].epoch ?? 0;
          return 'pass';
        });
        traffic(s, 6);
        s.run(250);
        const lost = s.railsLost;
        traffic(s, 6);
        s.world.mustFinish(60_000);
        s.require('a newer epoch was live when it came', () => epochWhenItCame >= 2);
        s.require('the newer epoch was not ended', () => s.railsLost === lost);
        s.finish();
      },
    };
  }
}

function* hole11(): Iterable<ScenarioCase> {
  for (const rails of [2, 3, 5]) {
    yield {
      name: `hole 11 a PUT is offered again, since its delivery was in doubt: it is carried out once (${rails} rails)`,
      run(lab) {
        // Control goes first over rail 0, which cannot put; the window is on the others.
        const list = scenarioRails(rails).map((rail, i) => ({ ...rail, canPut: i > 0 }));
        const s = new Scenario(lab, { rails: list });
        cutAt(s, PACKET.PUT, 'arrived', { linkNo: 0 }, rails - 1);
        const offers = s.whenever({ stage: 'arrive', type: PACKET.PUT }, () => 'pass');
        sandwich(s, LONG);
        s.require('it was offered again', () => offers.hits > rails - 1);
        s.requireCount('controlStale');
        s.requireCount('puts');
        s.finish();
      },
    };
    yield {
      name: `hole 11 the same with a second failure (${rails} rails)`,
      run(lab) {
        const s = new Scenario(lab, { rails: transferRails(rails, 'put') });
        cutAt(s, PACKET.PUT, 'arrived', { linkNo: 0 });
        cutAgain(s, 'pass', [PACKET.PUT, PACKET.FIN, PACKET.RNDVRESTARTNOTIFY, PACKET.RAILDOWN]);
        sandwich(s, LONG);
        s.finish();
      },
    };
  }
}

export const holes: readonly ScenarioCase[] = [
  ...hole1(),
  ...hole2(),
  ...hole3(),
  ...hole4(),
  ...hole5(),
  ...hole6(),
  ...death(),
  ...hole7(),
  ...hole8(),
  ...hole9(),
  ...hole10(),
  ...hole11(),
];
