// The test list of Open MPI's BFO, rows 9 to 15: which link dies, in which direction, how often; changes of protocol, damage,
// all links at once, order under wildcards, and bytes that a kernel took and no process read.
import { PACKET, PACKET_NAMES } from '../../../src/pml/hdr.ts';
import { ANY } from '../../../src/pml/match.ts';
import { cutAt, SCENARIO_RAIL, Scenario, type ScenarioCase, scenarioRails } from '../../../tools/sim/scenario.ts';
import { sandwich, type Transfer, transferRails } from './bfo-rows.ts';

const LONG = 6000;
const TRANSFERS: readonly Transfer[] = ['copy', 'put', 'get'];

/** So many messages of all sorts in both directions, each with its receive. */
export function traffic(s: Scenario, rounds: number, bytes: readonly number[] = [100, 5000, 900, 3000]): void {
  for (let i = 0; i < rounds; i++) {
    const length = bytes[i % bytes.length];
    s.recv(length, 0, 1, 0);
    s.send(length, 0, 0, 1);
    s.recv(length, 0, 0, 1);
    s.send(length, 0, 1, 0);
  }
}

function* row9(): Iterable<ScenarioCase> {
  for (const transfer of TRANSFERS) {
    yield {
      name: `bfo 9.9 the fastest link dies, a slower class survives (${transfer})`,
      run(lab) {
        const rails = transferRails(2, transfer).map((rail, i) => ({
          ...rail,
          bytesPerMs: i === 0 ? 100_000 : 500,
          latencyUs: i === 0 ? 5 : 2000,
        }));
        const s = new Scenario(lab, { rails });
        cutAt(s, transfer === 'copy' ? PACKET.FRAG : transfer === 'put' ? 'put' : 'getData', 'not arrived', { linkNo: 0 });
        sandwich(s, 4 * LONG);
        s.finish();
      },
    };
    yield {
      name: `bfo 9.9 five links die one after the other, the last one carries all (${transfer})`,
      run(lab) {
        const s = new Scenario(lab, { rails: transferRails(5, transfer) });
        let cut = 0;
        let nextMs = 0;
        s.whenever({ stage: 'arrive', kind: 'cell' }, ({ link }) => {
          if (cut >= 4 || s.world.nowMs < nextMs) return 'pass';
          cut++;
          nextMs = s.world.nowMs + 8;
          s.fabric.cut(link);
          return cut % 2 === 0 ? 'lose' : 'pass';
        });
        s.require('four links died', () => cut === 4);
        for (let i = 0; i < 12; i++) traffic(s, 4, [20_000, 100, 6000]);
        s.finish();
      },
    };
    yield {
      name: `bfo 9.9 a link of a higher exclusivity class dies, the lower class takes over (${transfer})`,
      run(lab) {
        const rails = transferRails(3, transfer).map((rail, i) => ({ ...rail, exclusivity: i < 2 ? 200 : 100 }));
        const s = new Scenario(lab, { rails });
        const lower = s.whenever({ linkNo: 2, kind: 'cell' }, () => 'pass');
        s.require('the lower class carried frames', () => lower.hits > 0);
        cutAt(s, transfer === 'copy' ? PACKET.FRAG : transfer === 'put' ? 'put' : 'getData', 'half arrived');
        sandwich(s, LONG);
        s.run(3);
        s.fabric.cut(s.link(0));
        s.fabric.cut(s.link(1));
        traffic(s, 4);
        s.finish();
      },
    };
  }
}

function* row10(): Iterable<ScenarioCase> {
  for (const liveness of ['self', 'siblings'] as const) {
    for (const direction of ['from the sender', 'from the receiver', 'both'] as const) {
      for (const lossy of [true, false]) {
        yield {
          name: `bfo 9.10 nothing comes through ${direction}, ${lossy ? 'and it is lost' : 'and it is kept for later'} (liveness ${liveness})`,
          run(lab) {
            const s = new Scenario(lab, { rails: scenarioRails(3, { liveness }) });
            s.on({ stage: 'leave', type: PACKET.FRAG, linkNo: 0 }, ({ link }) => {
              if (direction !== 'from the receiver') s.fabric.blackhole(link, 0, { lossy });
              if (direction !== 'from the sender') s.fabric.blackhole(link, 1, { lossy });
              return 'pass';
            });
            s.requireLost();
            traffic(s, 6);
            s.world.mustFinish(60_000);
            s.finish();
          },
        };
      }
    }
  }
  for (const blind of [0, 1]) {
    yield {
      name: `bfo 9.10 the link is dead for ${blind === 0 ? 'the receiver' : 'the sender'} only`,
      run(lab) {
        const s = new Scenario(lab, { rails: scenarioRails(2) });
        s.fabric.onlyOtherSideNotices(s.link(0), blind);
        cutAt(s, PACKET.FRAG, 'not arrived', { linkNo: 0 }, 2);
        traffic(s, 6);
        s.finish();
      },
    };
  }
  for (const rails of [2, 3, 5]) {
    yield {
      name: `bfo 9.10 a link flaps every 10 ms, ${rails} rails`,
      run(lab) {
        const s = new Scenario(lab, {
          rails: scenarioRails(rails),
          params: { bml_redial_min_ms: '1', bml_redial_max_ms: '2', bml_flap_hold_max_ms: '1', bml_connect_timeout_ms: '10' },
        });
        s.fabric.flap(s.link(0), 40, 2000, 8000, { inFlight: 'half' });
        for (let i = 0; i < 40; i++) {
          traffic(s, 2, [8000, 200]);
          s.run(10);
        }
        s.requireLost(10);
        s.finish();
      },
    };
  }
  yield {
    name: 'bfo 9.10 every link flaps, each at its own pace',
    run(lab) {
      const s = new Scenario(lab, {
        rails: scenarioRails(3),
        params: { bml_redial_min_ms: '1', bml_redial_max_ms: '2', bml_flap_hold_max_ms: '1', bml_connect_timeout_ms: '10' },
      });
      for (const [i, us] of [9000, 14_000, 23_000].entries())
        s.fabric.flap(s.link(i), 20, 3000, us, { inFlight: i === 1 ? 'delivered' : 'lost' });
      for (let i = 0; i < 40; i++) {
        traffic(s, 2, [8000, 200]);
        s.run(10);
      }
      s.requireLost(20);
      s.requireCount('restarts');
      s.finish();
    },
  };
}

function* row11(): Iterable<ScenarioCase> {
  yield {
    name: 'bfo 9.11 written over two rails, then over one, then copied',
    run(lab) {
      const rails = scenarioRails(3).map((rail, i) => ({ ...rail, canPut: i < 2 }));
      const s = new Scenario(lab, { rails });
      cutAt(s, 'put', 'half arrived', { linkNo: 0 });
      const second = s.whenever({ stage: 'arrive', kind: 'put', linkNo: 1 }, ({ link }) => {
        if (s.count('restarts') === 0) return 'pass';
        s.fabric.cut(link);
        return 'lose';
      });
      let copied = 0;
      s.whenever({ stage: 'arrive', type: PACKET.FRAG }, () => {
        if (s.count('restarts') >= 2) copied++;
        return 'pass';
      });
      sandwich(s, 3 * LONG);
      s.require('written again over the second rail', () => second.hits > 0);
      s.require('copied in the end', () => copied > 0);
      s.requireCount('restarts', 2);
      s.finish();
    },
  };
  yield {
    name: 'bfo 9.11 read, then written, then copied',
    run(lab) {
      const rails = scenarioRails(3).map((rail, i) => ({ ...rail, canGet: true, canPut: i === 1 }));
      const s = new Scenario(lab, { rails });
      cutAt(s, 'getData', 'half arrived', { linkNo: 0 });
      let written = 0;
      s.whenever({ stage: 'arrive', kind: 'put', linkNo: 1 }, ({ link }) => {
        if (++written > 2) {
          s.fabric.cut(link);
          return 'lose';
        }
        return 'pass';
      });
      let copied = 0;
      s.whenever({ stage: 'arrive', type: PACKET.FRAG }, () => {
        copied++;
        return 'pass';
      });
      sandwich(s, 4 * LONG);
      s.requireCount('recvErrNotifies');
      s.requireCount('restarts', 2);
      s.require('written after the reading failed, and copied in the end', () => written > 2 && copied > 0);
      s.finish();
    },
  };
  for (const count of [2, 3, 5]) {
    yield {
      name: `bfo 9.11 the only rail that can write dies, the other ${count - 1} copy`,
      run(lab) {
        const rails = scenarioRails(count).map((rail, i) => ({ ...rail, canPut: i === 0 }));
        const s = new Scenario(lab, { rails });
        cutAt(s, 'put', 'arrived', { linkNo: 0, piece: 'inner' }, 4);
        sandwich(s, 4 * LONG);
        s.requireCount('puts');
        s.finish();
      },
    };
  }
}

function* row12(): Iterable<ScenarioCase> {
  const control = [
    PACKET.ACK,
    PACKET.RNDV,
    PACKET.MATCH,
    PACKET.FRAG,
    PACKET.RNDVRESTARTNOTIFY,
    PACKET.RNDVRESTARTACK,
    PACKET.RAILDOWN,
  ] as const;
  for (const type of control) {
    for (const rails of [2, 3]) {
      yield {
        name: `bfo 9.12 a bit flips in the header of a ${PACKET_NAMES[type]}, ${rails} rails`,
        run(lab) {
          const s = new Scenario(lab, { rails: scenarioRails(rails) });
          if (type >= PACKET.RNDVRESTARTNOTIFY) cutAt(s, PACKET.FRAG, 'not arrived', {}, 2);
          s.on({ stage: 'arrive', type, piece: 'first' }, ({ item, header }) => {
            if (item.kind !== 'cell' || header === null) return 'pass';
            item.headerDamaged = true;
            header[8 + type] ^= 0x04;
            return 'pass';
          });
          if (rails === 2) for (const link of s.fabric.links()) s.fabric.at(s.fabric.nowUs + 100_000, () => s.fabric.mend(link));
          s.requireLost();
          traffic(s, 2);
          s.finish();
        },
      };
    }
  }
  for (const type of [PACKET.MATCH, PACKET.RNDV, PACKET.FRAG] as const) {
    for (const times of [1, 4]) {
      yield {
        name: `bfo 9.12 a bit flips in the data of ${times} ${PACKET_NAMES[type]}: refused, and sent again; the rail lives`,
        run(lab) {
          const s = new Scenario(lab, { rails: scenarioRails(2) });
          s.on(
            { stage: 'arrive', type, piece: 'first' },
            ({ item }) => {
              if (item.kind !== 'cell' || item.chunk.length === 0) return 'pass';
              item.payloadDamaged = true;
              item.chunk[0] ^= 0x04;
              return 'pass';
            },
            1,
            times,
          );
          traffic(s, 3);
          s.requireCount('refused', times);
          s.require('no rail was lost', () => s.railsLost === 0);
          s.finish();
        },
      };
    }
  }
  yield {
    name: 'bfo 9.12 a rail that damages every payload goes down',
    run(lab) {
      const s = new Scenario(lab, { rails: [SCENARIO_RAIL, { ...SCENARIO_RAIL, payloadDamagePer10k: 10_000 }] });
      traffic(s, 30);
      s.requireCount('refused');
      s.requireLost();
      s.finish();
    },
  };
}

function* row13(): Iterable<ScenarioCase> {
  for (const transfer of TRANSFERS) {
    for (const rails of [2, 3, 5]) {
      for (const inFlight of ['lost', 'delivered', 'half'] as const) {
        yield {
          name: `bfo 9.13 all ${rails} links die at once, what travels is ${inFlight}, one returns (${transfer})`,
          run(lab) {
            const s = new Scenario(lab, { rails: transferRails(rails, transfer) });
            const what =
              transfer === 'copy' ? { type: PACKET.FRAG } : { kind: transfer === 'put' ? ('put' as const) : ('getData' as const) };
            s.on(
              { stage: 'arrive', ...what },
              () => {
                for (const link of s.fabric.links()) s.fabric.cut(link, { inFlight });
                s.fabric.at(s.fabric.nowUs + 300_000, () => s.fabric.mend(s.link(rails - 1)));
                return 'pass';
              },
              3,
            );
            s.requireLost(rails);
            traffic(s, 6);
            s.finish();
          },
        };
      }
    }
  }
}

function* row14(): Iterable<ScenarioCase> {
  for (const rails of [2, 3, 5]) {
    for (const fate of ['not arrived', 'arrived'] as const) {
      yield {
        name: `bfo 9.14 wildcard receives while envelopes overtake each other and a rail dies (${fate}), ${rails} rails`,
        run(lab) {
          const s = new Scenario(lab, {
            ranks: 4,
            rails: scenarioRails(rails, { jitterUs: 3000, busyPer10k: 2000, busyUsMax: 300 }),
            // Rail 0 goes on being the first, though it is slower at times.
            params: { bml_stall_timeout_ms: '0' },
          });
          cutAt(s, PACKET.MATCH, fate, { linkNo: 0 }, 5);
          for (let round = 0; round < 12; round++) {
            for (let source = 1; source < 4; source++) s.send(round % 4 === 3 ? 5000 : 300 + round, round % 3, source, 0);
            for (let i = 0; i < 3; i++) s.recv(6000, i === 0 ? ANY : round % 3, 0, i === 1 ? 1 + (round % 3) : ANY);
            s.run(0.2);
          }
          s.requireCount('earlyArrivals');
          s.requireCount('envelopesResent');
          // A receive for one tag may stay empty, because an older one of any tag took its message.
          s.run(500);
          for (const posted of s.world.oracle.posted) if (posted.matched === undefined) s.world.cancel(posted);
          const left = s.world.oracle.sent.filter((message) => message.matchedBy === undefined);
          for (const _ of left) s.recv(6000, ANY, 0, ANY);
          s.finish();
        },
      };
    }
  }
}

function* row15(): Iterable<ScenarioCase> {
  for (const transfer of TRANSFERS) {
    for (let seed = 1; seed <= 4; seed++) {
      yield {
        name: `bfo 9.15 the kernel took the bytes, the process did not read them, and the rail closes (${transfer}, draw ${seed})`,
        run(lab) {
          const s = new Scenario(lab, { seed, rails: transferRails(2, transfer) });
          s.fabric.pause(1);
          traffic(s, 4);
          let arrived = 0;
          s.whenever({ stage: 'arrive', from: 0, linkNo: 0, kind: 'cell', piece: 'last' }, () => {
            arrived++;
            return 'pass';
          });
          s.run(20);
          s.fabric.cut(s.link(0));
          s.run(50);
          s.fabric.resume(1);
          s.require('frames lay unread when the rail was lost', () => arrived > 0);
          s.requireLost();
          s.finish();
        },
      };
    }
  }
}

export const bfoRowsMore: readonly ScenarioCase[] = [...row9(), ...row10(), ...row11(), ...row12(), ...row13(), ...row14(), ...row15()];
