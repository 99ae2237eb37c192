// The holes of the review, 12 to 22; the sequences that belong to no row: standby rails, late one-sided writes, BYE over a
// failing rail, numbers close to their wrap-around.
import { OFFSET, PACKET } from '../../../src/pml/hdr.ts';
import { ANY } from '../../../src/pml/match.ts';
import { cutAgain, cutAt, SCENARIO_RAIL, Scenario, type ScenarioCase, scenarioRails } from '../../../tools/sim/scenario.ts';
import { sandwich, type Transfer, transferRails } from './bfo-rows.ts';
import { traffic } from './bfo-rows-more.ts';

const LONG = 6000;
const TRANSFERS: readonly Transfer[] = ['copy', 'put', 'get'];

function* hole12(): Iterable<ScenarioCase> {
  yield {
    name: "hole 12 the sender's request is complete and its FIN is in doubt: the message still answers for it",
    run(lab) {
      const s = new Scenario(lab, { rails: transferRails(2, 'put') });
      let complete = false;
      s.on(
        { stage: 'arrive', type: PACKET.FIN, from: 0 },
        ({ link }) => {
          complete = message.done;
          s.fabric.cut(link);
          return 'lose';
        },
        6,
      );
      s.recv(LONG);
      const message = s.send(LONG);
      s.require('the request was complete when its FIN was lost', () => complete);
      s.finish();
    },
  };
  for (const bytes of [0, 100, 256]) {
    yield {
      name: `hole 12 a synchronous send of ${bytes} bytes: the receive is complete, the ACK is in doubt`,
      run(lab) {
        const s = new Scenario(lab, { rails: scenarioRails(2) });
        const receive = s.recv(256);
        let complete = false;
        s.on({ stage: 'arrive', type: PACKET.ACK }, ({ link }) => {
          complete = receive.done;
          s.fabric.cut(link);
          return 'lose';
        });
        s.send(bytes, 0, 0, 1, true);
        s.require('the receive was complete when its ACK was lost', () => complete);
        s.finish();
      },
    };
  }
  yield {
    name: 'hole 12 an RGET is read and received, its FIN is in doubt',
    run(lab) {
      const s = new Scenario(lab, { rails: transferRails(2, 'get') });
      const receive = s.recv(LONG);
      let complete = false;
      s.on({ stage: 'arrive', type: PACKET.FIN, from: 1 }, ({ link }) => {
        complete = receive.done;
        s.fabric.cut(link);
        return 'lose';
      });
      s.send(LONG);
      s.require('the receive was complete when its FIN was lost', () => complete);
      s.finish();
    },
  };
}

function* hole13(): Iterable<ScenarioCase> {
  for (const rails of [2, 3, 5]) {
    for (const again of [false, true]) {
      yield {
        name: `hole 13 own reads are in doubt: RECVERRNOTIFY, and the message goes on (${rails} rails${again ? ', a second failure' : ''})`,
        run(lab) {
          const s = new Scenario(lab, { rails: transferRails(rails, 'get') });
          cutAt(s, 'getData', 'half arrived', {}, 10);
          if (again) cutAgain(s, 'lose');
          s.requireCount('recvErrNotifies');
          s.requireCount('restarts');
          sandwich(s, 2 * LONG);
          s.finish();
        },
      };
    }
  }
  yield {
    name: 'hole 13 reads fail one after the other on two rails before the sender has answered: one restart',
    run(lab) {
      const s = new Scenario(lab, { rails: transferRails(3, 'get') });
      let cuts = 0;
      s.whenever({ stage: 'arrive', kind: 'getData' }, ({ link }) => {
        if (link.linkNo === 2 || cuts >= 2) return 'pass';
        cuts++;
        s.fabric.cut(link);
        return 'lose';
      });
      s.require('two rails were lost while they read', () => cuts === 2);
      s.requireCount('recvErrNotifies');
      sandwich(s, 2 * LONG);
      s.finish();
    },
  };
}

function* hole14(): Iterable<ScenarioCase> {
  for (const type of [PACKET.MATCH, PACKET.FRAG, PACKET.RNDV] as const) {
    for (const part of ['header', 'payload'] as const) {
      yield {
        name: `hole 14 a frame of type ${type} with a damaged ${part} is never taken for delivered`,
        run(lab) {
          const s = new Scenario(lab, { rails: scenarioRails(2) });
          s.on(
            { stage: 'leave', type, piece: 'first' },
            ({ item, header }) => {
              if (item.kind !== 'cell' || header === null) return 'pass';
              if (part === 'header') item.headerDamaged = true;
              else item.payloadDamaged = true;
              (part === 'header' ? header : item.chunk)[5] ^= 0x40;
              return 'pass';
            },
            type === PACKET.MATCH ? 2 : 1,
          );
          s.recv(1000);
          s.send(1000);
          traffic(s, 3);
          if (part === 'payload') s.requireCount('refused');
          else s.requireLost();
          s.finish();
        },
      };
    }
  }
  yield {
    name: 'hole 14 a packet that breaks the protocol ends the rail epoch and changes no state',
    run(lab) {
      const s = new Scenario(lab, { rails: scenarioRails(2), breaches: 'allowed' });
      s.on({ stage: 'arrive', type: PACKET.ACK }, ({ header }) => {
        // A sender id that was never issued, in a frame whose check is sound.
        if (header !== null) new DataView(header.buffer, header.byteOffset).setUint32(16, 0x00ff_fff0, true);
        return 'pass';
      });
      traffic(s, 3);
      s.requireLost();
      s.finish();
    },
  };
}

function* hole15(): Iterable<ScenarioCase> {
  for (const fate of ['arrived', 'not arrived'] as const) {
    yield {
      name: `hole 15 a message for a context that is freed meanwhile (${fate}, then sent again): dropped, not matched elsewhere`,
      run(lab) {
        const s = new Scenario(lab, { rails: scenarioRails(2) });
        cutAt(s, PACKET.MATCH, fate);
        const lost = s.send(500, 0, 0, 1, false, 9);
        s.run(0.6);
        s.pml(1).freeContext(9);
        s.run(50);
        s.requireCount('freedContextDropped');
        s.requireCount('envelopesResent');
        // It reached its context too late: for the books of the oracle it is gone.
        const flow = (s.world.oracle as unknown as { unmatched: Map<string, unknown[]> }).unmatched.get('9/0/1');
        flow?.splice(0);
        s.require('eager, so complete', () => lost.done);
        traffic(s, 3);
        s.finish();
      },
    };
    yield {
      name: `hole 15 a message for a context that the receiver does not know yet, twice (${fate} first): matched once`,
      run(lab) {
        const s = new Scenario(lab, { rails: scenarioRails(2) });
        cutAt(s, PACKET.MATCH, fate);
        s.send(500, 3, 0, 1, false, 11);
        s.run(50);
        s.requireCount('envelopesResent');
        s.send(501, 4, 0, 1, false, 11);
        s.run(10);
        s.recv(600, ANY, 1, ANY, 11);
        s.recv(600, ANY, 1, ANY, 11);
        if (fate === 'arrived') s.requireCount('envelopeDuplicates');
        s.finish();
      },
    };
  }
}

function* hole16(): Iterable<ScenarioCase> {
  for (const rails of [1, 2]) {
    for (const lossy of [true, false]) {
      yield {
        name: `hole 16 every rail goes silent for two seconds and nobody can ask a kernel (${lossy ? 'lost' : 'kept'}, ${rails} rails): dialled anew, the peer lives`,
        run(lab) {
          const s = new Scenario(lab, { rails: scenarioRails(rails, { liveness: 'siblings' }) });
          traffic(s, 4);
          s.run(2);
          for (const link of s.fabric.links()) for (const rank of [0, 1]) s.fabric.blackhole(link, rank, { lossy });
          s.run(2000);
          for (const link of s.fabric.links()) s.fabric.mend(link);
          s.require('nobody failed', () => s.world.processes.every(({ peerFailures }) => peerFailures.length === 0));
          if (lossy) s.requireLost();
          s.finish();
        },
      };
    }
  }
  yield {
    name: 'hole 16 the state of the only rail is lost in one direction, for good: a new epoch takes its place',
    run(lab) {
      const s = new Scenario(lab, { rails: scenarioRails(1, { liveness: 'siblings' }) });
      // As a NAT that forgot the connection: this stream never goes on, a new one does.
      s.on({ stage: 'arrive', type: PACKET.FRAG, piece: 'first' }, () => 'lose', 2);
      s.requireLost();
      traffic(s, 3);
      s.finish();
    },
  };
}

function* hole17(): Iterable<ScenarioCase> {
  for (const rails of [2, 3]) {
    yield {
      name: `hole 17 a retired id is its own tombstone: after 2000 messages nothing is kept (${rails} rails)`,
      run(lab) {
        const s = new Scenario(lab, { rails: scenarioRails(rails) });
        // One rendezvous stays unmatched all the while: a watermark would stall behind it.
        s.send(LONG, 77);
        for (let i = 0; i < 40; i++) {
          traffic(s, 25, [2000, 1500]);
          s.until('all but one are received', () => s.world.oracle.unfinished().length === 1);
        }
        cutAt(s, PACKET.FRAG, 'arrived', { from: 0 }, 1);
        s.recv(1300, 5);
        s.send(1300, 5);
        s.until(
          'only the unmatched one is left',
          () => s.pml(0).internals.core.sends.size === 1 && s.pml(1).internals.core.recvs.size === 0,
        );
        const { restartNacks } = s.pml(1).peer(0);
        s.until('no answer is owed', () => restartNacks.size === 0);
        const slots = (s.pml(0).internals.core.sends as unknown as { records: unknown[] }).records.length;
        s.require('slots are used again', () => slots < 200);
        s.requireCount('restartNacks');
        s.recv(LONG, 77);
        s.finish();
      },
    };
  }
}

function* hole18(): Iterable<ScenarioCase> {
  for (const rails of [2, 3]) {
    yield {
      name: `hole 18 more missing ranges than a RESTARTACK holds: the rest above the last one is sent again (${rails} rails)`,
      run(lab) {
        const frags = 700;
        const s = new Scenario(lab, {
          rails: scenarioRails(rails, { bytesPerMs: 20_000 }),
          // Much is outstanding at once, and for long.
          params: { bml_window_min_bytes: '1048576', bml_window_max_bytes: '1048576', bml_stall_timeout_ms: '0' },
        });
        // Rail 0 loses every fragment it was given, the others deliver theirs: every second or third range is missing.
        s.on({ stage: 'arrive', type: PACKET.ACK }, () => {
          s.fabric.blackhole(s.link(0), 0, { lossy: true });
          return 'pass';
        });
        let ranges = 0;
        s.on({ stage: 'arrive', type: PACKET.RNDVRESTARTACK }, ({ header }) => {
          if (header !== null) ranges = new DataView(header.buffer, header.byteOffset).getUint32(48, true);
          return 'pass';
        });
        s.recv(frags * 1024);
        s.send(frags * 1024);
        s.require('the list was full', () => ranges === 128);
        s.requireLost();
        s.finish();
      },
    };
  }
}

function* hole19(): Iterable<ScenarioCase> {
  for (const rails of [1, 2, 3]) {
    yield {
      name: `hole 19 every rail of a parked RGET dies and comes back: matched then, it is answered by ACK (${rails} rails)`,
      run(lab) {
        const s = new Scenario(lab, { rails: transferRails(rails, 'get') });
        s.send(LONG);
        s.run(10);
        for (const link of s.fabric.links()) {
          s.fabric.cut(link);
          s.fabric.at(s.fabric.nowUs + 30_000, () => s.fabric.mend(link));
        }
        s.run(3000);
        const answers = s.whenever({ stage: 'arrive', type: PACKET.ACK }, () => 'pass');
        s.recv(LONG);
        s.requireLost(rails);
        s.require('answered by ACK, and nothing read', () => answers.hits === 1 && s.count('gets') === 0);
        s.finish();
      },
    };
    yield {
      name: `hole 19 an RGET in doubt is sent again with new keys, the parked one keeps the old ones (${rails} rails)`,
      run(lab) {
        const s = new Scenario(lab, { rails: transferRails(rails, 'get') });
        cutAt(s, PACKET.RGET, 'arrived');
        s.send(LONG);
        s.run(10);
        for (const link of s.fabric.links()) s.fabric.mend(link);
        s.run(3000);
        s.recv(LONG);
        s.requireCount('envelopeDuplicates');
        s.finish();
      },
    };
  }
}

function* hole20(): Iterable<ScenarioCase> {
  for (const transfer of TRANSFERS) {
    for (const room of [0, 100, 256, 3000]) {
      for (const fate of ['not arrived', 'arrived'] as const) {
        yield {
          name: `hole 20 a message of 6000 bytes into ${room} (${transfer}); the first data frame, or the answer, ${fate}`,
          run(lab) {
            const s = new Scenario(lab, { rails: transferRails(2, transfer) });
            const target =
              room > 256 || (room > 0 && transfer === 'get')
                ? transfer === 'copy'
                  ? PACKET.FRAG
                  : transfer === 'put'
                    ? 'put'
                    : 'getData'
                : PACKET.ACK;
            cutAt(s, target, fate);
            const receive = s.recv(room);
            s.send(LONG);
            s.recv(50);
            s.send(50);
            s.requireCount('truncations');
            s.require('it ended with ERR_TRUNCATE', () => receive.request?.error?.code === 'ERR_TRUNCATE');
            s.finish();
          },
        };
      }
    }
  }
  yield {
    name: 'hole 20 NOTIFY comes for a truncated message that is complete: RESTARTNACK',
    run(lab) {
      const s = new Scenario(lab, { rails: scenarioRails(2) });
      cutAt(s, PACKET.FRAG, 'arrived', {}, 3);
      s.recv(3000);
      s.send(LONG);
      s.requireCount('restartNacks');
      s.requireCount('truncations');
      s.finish();
    },
  };
}

function* hole21(): Iterable<ScenarioCase> {
  for (const transfer of TRANSFERS) {
    yield {
      name: `hole 21 a matched receive cannot be cancelled, an unmatched one can, and takes nothing afterwards (${transfer})`,
      run(lab) {
        const s = new Scenario(lab, { rails: transferRails(2, transfer) });
        const data = transfer === 'copy' ? PACKET.FRAG : transfer === 'put' ? 'put' : 'getData';
        cutAt(s, data, 'half arrived', {}, 10);
        const taken = s.recv(LONG);
        const spare = s.recv(LONG, 8);
        s.send(LONG);
        let refused = false;
        s.whenever({ type: PACKET.RAILDOWN }, () => {
          if (taken.matched !== undefined && !taken.done) refused = !s.world.cancel(taken) || refused;
          return 'pass';
        });
        s.run(20);
        s.require('cancel of the matched one failed', () => refused);
        s.require('cancel of the other one succeeded', () => spare.cancelled);
        if (!s.world.cancel(spare)) throw new Error('scenario: the unmatched receive was not cancelled');
        s.send(LONG, 8);
        s.run(20);
        s.recv(LONG, 8);
        s.requireCount('cancels');
        s.finish();
      },
    };
  }
}

function* hole22(): Iterable<ScenarioCase> {
  yield {
    name: 'hole 22 silent means no bytes, not no whole frame: a slow rail with long frames does not flap',
    run(lab) {
      // A fragment of 64 KiB takes a second and a half, the rail timeout is 400 ms.
      const s = new Scenario(lab, {
        rails: scenarioRails(2, { liveness: 'siblings', bytesPerMs: 42, cellBytesMax: 1024 }),
        // It holds what it carries for longer than the stall time-out of faster rails, and is not judged by that here.
        params: { pml_frag_bytes: '65536', bml_stall_timeout_ms: '0' },
      });
      for (let i = 0; i < 3; i++) {
        s.recv(200_000);
        s.send(200_000);
      }
      s.world.mustFinish(60_000);
      s.require('no rail was lost', () => s.railsLost === 0);
      s.finish();
    },
  };
  for (const liveness of ['self', 'siblings'] as const) {
    yield {
      name: `hole 22 frames arrive and no count comes back for a second: nothing is lost or doubled (liveness ${liveness})`,
      run(lab) {
        const s = new Scenario(lab, { rails: scenarioRails(2, { liveness }) });
        traffic(s, 6);
        s.run(1);
        for (const link of s.fabric.links()) s.fabric.stall(link, 1, 1_000_000);
        s.run(900);
        const waiting = s.pml(0).internals.core.sends.size;
        s.require('sends waited for their counts', () => waiting > 0);
        s.finish();
      },
    };
  }
}

function* others(): Iterable<ScenarioCase> {
  for (const transfer of TRANSFERS) {
    yield {
      name: `standby: the service rail works only while the fast one is gone (${transfer})`,
      run(lab) {
        const rails = transferRails(2, transfer).map((rail, i) => ({
          ...rail,
          role: i === 1 ? ('standby' as const) : ('active' as const),
        }));
        const s = new Scenario(lab, { rails });
        let onStandby = 0;
        s.whenever({ stage: 'leave', linkNo: 1, kind: 'cell', piece: 'first' }, () => {
          onStandby++;
          return 'pass';
        });
        traffic(s, 4);
        s.world.mustFinish(10_000);
        const before = onStandby;
        s.require('nothing went over the standby rail at first', () => before === 0);
        cutAt(s, transfer === 'copy' ? PACKET.FRAG : transfer === 'put' ? 'put' : 'getData', 'not arrived', { linkNo: 0 });
        traffic(s, 6);
        s.world.mustFinish(60_000);
        const during = onStandby;
        s.require('it carried the traffic meanwhile', () => during > 0);
        s.fabric.mend(s.link(0));
        s.until('the fast rail is back', () => s.pml(0).peer(1).bml.eager[0]?.index === 0 && s.pml(1).peer(0).bml.eager[0]?.index === 0);
        s.run(5);
        const then = onStandby;
        traffic(s, 6);
        s.world.mustFinish(60_000);
        const after = onStandby;
        s.require('and nothing afterwards', () => after === then);
        s.finish();
      },
    };
  }
  for (const rails of [2, 3]) {
    for (let seed = 1; seed <= 3; seed++) {
      yield {
        name: `one-sided writes land late, after the sender gave them up (${rails} rails, draw ${seed})`,
        run(lab) {
          const s = new Scenario(lab, {
            seed,
            rails: transferRails(rails, 'put', { lateOneSidedUsMax: 60_000, detectUsMin: 500, detectUsMax: 1000 }),
          });
          cutAt(s, 'put', 'half arrived', {}, 5);
          sandwich(s, 4 * LONG);
          s.until('complete', () => s.world.oracle.unfinished().length === 0);
          // The buffers are the users' now: what still lands would show.
          s.run(200);
          s.finish();
        },
      };
    }
  }
  for (const when of ['before it arrives', 'after it arrived'] as const) {
    for (const rails of [1, 2, 3]) {
      yield {
        name: `BYE goes over a rail that fails ${when} (${rails} rails)`,
        run(lab) {
          const s = new Scenario(lab, { rails: scenarioRails(rails) });
          traffic(s, 3);
          s.world.mustFinish(60_000);
          const hook = s.whenever({ stage: 'arrive', kind: 'bye' }, ({ link }, hit) => {
            if (hit > 1) return 'pass';
            s.fabric.cut(link);
            s.fabric.at(s.fabric.nowUs + 100_000, () => s.fabric.mend(link));
            return when === 'before it arrives' ? 'lose' : 'pass';
          });
          s.require('BYE met the failure', () => hook.hits > 0);
          s.finish();
        },
      };
    }
  }
  for (const last of [0, 1]) {
    for (const rails of [1, 2]) {
      yield {
        name: `BYE of the last one to leave (rank ${last}) is lost with every rail (${rails} rails)`,
        run(lab) {
          const s = new Scenario(lab, { rails: scenarioRails(rails) });
          traffic(s, 3);
          s.world.mustFinish(60_000);
          s.world.processes[1 - last].engine.beginFinalize();
          s.run(200);
          const hook = s.whenever({ stage: 'arrive', kind: 'bye', from: last }, ({ link }, hit) => {
            if (hit > rails) return 'pass';
            s.fabric.cut(link);
            s.fabric.at(s.fabric.nowUs + 100_000, () => s.fabric.mend(link));
            return 'lose';
          });
          s.require('its BYE was lost', () => hook.hits > 0);
          s.finish();
        },
      };
    }
  }
  yield {
    name: 'one rank leaves while the other still computes: it waits for its BYE, and nothing fails',
    run(lab) {
      const s = new Scenario(lab, { ranks: 3, rails: scenarioRails(2) });
      traffic(s, 3);
      s.world.mustFinish(60_000);
      s.world.processes[0].engine.beginFinalize();
      s.run(500);
      if (s.world.processes[0].engine.isLeft()) throw new Error('scenario: rank 0 left before the others');
      s.recv(LONG, 0, 2, 1);
      s.send(LONG, 0, 1, 2);
      s.finish();
    },
  };
  for (const transfer of TRANSFERS) {
    yield {
      name: `sequence numbers and generations pass 2^32 while rails die (${transfer})`,
      run(lab) {
        const s = new Scenario(lab, { rails: transferRails(3, transfer) });
        const start = 0xffff_fffa;
        for (const rank of [0, 1]) {
          const { core } = s.pml(rank).internals;
          s
            .pml(rank)
            .peer(1 - rank)
            .flowOut(0).nextSeq = start;
          s
            .pml(rank)
            .peer(1 - rank)
            .flowIn(0).expectedSeq = start;
          // The last two generations of every slot that is used next.
          for (const table of [core.sends, core.recvs]) {
            const { generations, records, free } = table as unknown as { generations: number[]; records: unknown[]; free: number[] };
            for (let slot = 31; slot >= 0; slot--) {
              generations[slot] = 0xffff_fffd;
              records[slot] = undefined;
              free.push(slot);
            }
          }
        }
        const data = transfer === 'copy' ? PACKET.FRAG : transfer === 'put' ? 'put' : 'getData';
        cutAt(s, data, 'not arrived', {}, 8);
        cutAt(s, PACKET.MATCH, 'arrived', {}, 3);
        for (let i = 0; i < 10; i++) {
          traffic(s, 4, [100, 5000]);
          s.run(20);
        }
        s.require('the numbers went over', () => s.pml(0).peer(1).flowOut(0).nextSeq < start);
        s.finish();
      },
    };
  }
  for (const [transfer, data] of [
    ['copy', { type: PACKET.FRAG }],
    ['put', { kind: 'put' as const }],
  ] as const) {
    yield {
      name: `the epoch of a message passes 2^32 in a restart (${transfer})`,
      run(lab) {
        const s = new Scenario(lab, { rails: transferRails(2, transfer) });
        const start = 0xffff_fffd;
        let moved = false;
        // Set forward at the one moment at which both sides hold still: NOTIFY was taken and its answer is about to arrive.
        const forward = (header: Uint8Array | null, offset: number) => {
          if (header !== null) new DataView(header.buffer, header.byteOffset).setUint32(offset, start, true);
        };
        s.on({ stage: 'arrive', type: PACKET.RNDVRESTARTACK }, ({ header }) => {
          moved = true;
          for (const message of s.pml(0).internals.core.sends.values()) if (message.state === 'NOTIFYING') message.epoch = start;
          for (const message of s.pml(1).internals.core.recvs.values()) message.epoch = start;
          forward(header, OFFSET.restartEpoch);
          return 'pass';
        });
        // Offers of that restart that were already under way.
        s.whenever({ stage: 'arrive', type: PACKET.PUT }, ({ header }) => {
          const isOld = header !== null && new DataView(header.buffer, header.byteOffset).getUint32(OFFSET.putEpoch, true) === 1;
          if (moved && isOld) forward(header, OFFSET.putEpoch);
          return 'pass';
        });
        let cuts = 0;
        s.whenever({ stage: 'arrive', ...data }, ({ link }) => {
          if (cuts >= 8) return 'pass';
          cuts++;
          s.fabric.cut(link);
          s.fabric.at(s.fabric.nowUs + 10_000, () => s.fabric.mend(link));
          return 'lose';
        });
        s.require('the epoch was close to its end', () => moved);
        s.requireCount('restarts', 5);
        sandwich(s, LONG);
        s.finish();
      },
    };
  }
  yield {
    name: 'rails of every speed and kind at once, all of them flapping',
    run(lab) {
      const s = new Scenario(lab, {
        ranks: 3,
        rails: [
          { ...SCENARIO_RAIL, canPut: true, bytesPerMs: 50_000 },
          { ...SCENARIO_RAIL, canGet: true, latencyUs: 900 },
          { ...SCENARIO_RAIL, liveness: 'siblings' },
        ],
      });
      for (const [i, link] of s.fabric.links().entries())
        s.fabric.flap(link, 4, 4000 + 700 * i, 60_000 + 9000 * i, { inFlight: i % 2 === 0 ? 'half' : 'lost' });
      for (let i = 0; i < 20; i++) {
        traffic(s, 2, [8000, 200]);
        s.run(20);
      }
      s.requireLost(6);
      s.finish();
    },
  };
}

export const holesMore: readonly ScenarioCase[] = [
  ...hole12(),
  ...hole13(),
  ...hole14(),
  ...hole15(),
  ...hole16(),
  ...hole17(),
  ...hole18(),
  ...hole19(),
  ...hole20(),
  ...hole21(),
  ...hole22(),
  ...others(),
];
