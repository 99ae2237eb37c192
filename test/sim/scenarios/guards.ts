// Situations in which one guard of the protocol is the only one, or which random runs reach too seldom. Each is named after a planted
// mistake (test/sim/mutants), which it finds, or whose second guard it plays alone.
import { BUSY } from '../../../src/btl/btl.ts';
import { PACKET } from '../../../src/pml/hdr.ts';
import { capture, replay, Scenario, type ScenarioCase, scenarioRails } from '../../../tools/sim/scenario.ts';

const LONG = 6000;

export const guards: readonly ScenarioCase[] = [
  {
    name: 'guard a suspect rail carries where no other does',
    run(lab) {
      const s = new Scenario(lab, { rails: scenarioRails(1, { liveness: 'siblings' }) });
      const [rail] = s.world.processes[0].engine.bml.peers.get(1)?.rails ?? [];
      s.recv(100);
      s.fabric.blackhole(s.link(0), 1);
      s.send(100);
      s.until('the rail is suspect', () => rail.state === 'SUSPECT', 10_000);
      const receive = s.recv(100);
      s.send(100);
      s.run(5);
      const arrived = receive.done && rail.state === 'SUSPECT';
      s.require('the message arrived over it', () => arrived);
      s.finishHealed();
    },
  },
  {
    name: 'guard a fragment is half written when its sender is declared dead',
    run(lab) {
      const s = new Scenario(lab, { rails: scenarioRails(2, { bytesPerMs: 100 }) });
      const receive = s.recv(LONG);
      s.send(LONG);
      s.on({ stage: 'arrive', type: PACKET.FRAG, piece: 'inner' }, () => {
        // At its next turn: the first piece is written by then.
        s.fabric.at(s.fabric.nowUs + 10, () => s.world.tellFailed(1, 0));
        return 'pass';
      });
      s.run(3000);
      s.require('the receive ended with an error', () => receive.request?.error?.code === 'ERR_PROC_FAILED');
      s.finish();
    },
  },
  {
    name: 'guard a rank leaves while its RESTARTNACK is lost',
    run(lab) {
      const s = new Scenario(lab, { rails: scenarioRails(2) });
      s.recv(LONG);
      const message = s.send(LONG);
      const cutAll = () => {
        for (const link of s.fabric.links()) {
          s.fabric.cut(link);
          s.fabric.at(s.fabric.nowUs + 20_000, () => s.fabric.mend(link));
        }
      };
      // All has arrived and is not reported: the sender restarts, to be told that nothing is missing.
      s.until('the receiver has everything', () => s.world.oracle.posted[0].done);
      if (!message.done) cutAll();
      s.on({ stage: 'leave', type: PACKET.RNDVRESTARTNACK }, () => {
        s.world.finalize(1);
        cutAll();
        return 'lose';
      });
      s.finish();
    },
  },
  {
    name: 'guard a handshake of an epoch that is over comes late',
    run(lab) {
      const s = new Scenario(lab, { rails: scenarioRails(2) });
      const link = s.link(0);
      s.fabric.cut(link);
      s.run(10);
      s.fabric.mend(link);
      s.until('the rail is back', () => s.world.allUp);
      const lost = s.railsLost;
      const hello = { rank: 0, incarnation: 1, rail: 0, key: 'sim0', epoch: 1 };
      link.from(0).push({ conn: null, bytes: 128, capture: () => ({ kind: 'hello', epoch: 1, hello, jobId: 'sim', secret: undefined }) });
      s.recv(LONG);
      s.send(LONG);
      s.run(50);
      s.require('no rail ends for it', () => s.railsLost === lost);
      s.finish();
    },
  },
  {
    name: 'guard what overtook a message that a dead rank had not sent again is dropped',
    run(lab) {
      const s = new Scenario(lab, { rails: scenarioRails(2) });
      const [first] = s.world.processes[0].engine.bml.peers.get(1)?.rails ?? [];
      const { endpoint } = first;
      s.fabric.skew(s.link(0), 0, 1_000_000);
      s.send(100);
      s.run(1);
      endpoint.send = () => BUSY;
      s.send(200);
      s.until('the second has come', () => s.count('earlyArrivals') >= 1);
      s.world.kill(0);
      s.world.tellFailed(1, 0);
      s.run(100);
      s.finish();
    },
  },
  {
    name: 'guard a FIN of an older epoch comes while the answer to the restart is lost',
    run(lab) {
      // Each rail carries puts from the start.
      const s = new Scenario(lab, { rails: scenarioRails(3, { canPut: true }), params: { bml_stall_timeout_ms: '0' } });
      const fin = capture(s, { type: PACKET.FIN, from: 0 });
      s.on({ stage: 'arrive', type: PACKET.FIN, from: 0 }, ({ link }) => {
        // Puts behind it are in doubt.
        s.fabric.cut(link);
        return 'pass';
      });
      let lost = false;
      s.on({ stage: 'leave', type: PACKET.RNDVRESTARTACK }, ({ link }) => {
        s.fabric.cut(link);
        lost = true;
        return 'lose';
      });
      s.recv(LONG);
      s.send(LONG);
      s.until('the answer is lost', () => lost);
      replay(s, fin);
      s.requireCount('controlStale');
      s.requireCount('restartAcks');
      s.finishHealed();
    },
  },
  {
    name: 'guard a NOTIFY of an older epoch comes late, and is answered while that of the next is on its way',
    run(lab) {
      const s = new Scenario(lab, { rails: scenarioRails(3) });
      s.on({ stage: 'arrive', type: PACKET.FRAG }, ({ link }) => {
        s.fabric.cut(link);
        return 'lose';
      });
      const notify = capture(s, { type: PACKET.RNDVRESTARTNOTIFY });
      const receive = s.recv(LONG);
      s.send(LONG);
      s.until('all has come in the second epoch', () => receive.done);
      const [message] = [...s.pml(0).internals.core.sends.values()];
      for (const rail of s.world.processes[0].engine.bml.peers.get(1)?.rails ?? [])
        if (rail.isCarrying && rail.index < 2) s.fabric.cut(s.link(rail.index));
      s.until('the sender asks once more', () => message.state === 'NOTIFYING' && message.epoch === 2);
      replay(s, notify);
      s.requireCount('restartNacks');
      s.run(1000);
      s.finishHealed();
    },
  },
  ...['up', 'down'].map(
    (host): ScenarioCase => ({
      name: `unreachable: a rank dies unheard, its host ${host}, and its rails are judged by their siblings`,
      run(lab) {
        const s = new Scenario(lab, { rails: scenarioRails(2, { liveness: 'siblings' }), params: { pml_peer_timeout_ms: '2000' } });
        // The survivor accepts: it cannot dial to find out.
        const message = s.send(LONG, 0, 1, 0);
        const receive = s.recv(LONG, 0, 1, 0);
        for (const link of s.fabric.links()) s.fabric.onlyOtherSideNotices(link, 1);
        s.world.kill(0, host as 'up' | 'down');
        s.run(1000);
        s.require('not before the timeout', () => early);
        const early = !message.done && !receive.done;
        s.run(10_000);
        s.require('the send ended', () => message.request?.error?.code === 'ERR_PROC_UNREACHABLE');
        s.require('the receive ended', () => receive.request?.error?.code === 'ERR_PROC_UNREACHABLE');
        s.finish();
      },
    }),
  ),
  {
    name: 'unreachable: a rank that computes for longer than the peer timeout is not given up by the one that dials it',
    run(lab) {
      const s = new Scenario(lab, { rails: scenarioRails(2, { liveness: 'siblings' }), params: { pml_peer_timeout_ms: '3000' } });
      s.recv(LONG);
      const message = s.send(LONG);
      s.fabric.pause(1);
      s.run(20_000);
      const waited = !message.done;
      s.require('it waited', () => waited);
      s.fabric.resume(1);
      s.finish();
    },
  },
];
