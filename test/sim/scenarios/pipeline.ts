// A long message over rails that register memory piece by piece: which pieces are registered when, and what a fault between two pieces does.
import { BUSY } from '../../../src/btl/btl.ts';
import { OFFSET, PACKET } from '../../../src/pml/hdr.ts';
import {
  cutAgain,
  cutAt,
  FATES,
  type Fate,
  SCENARIO_RAIL,
  Scenario,
  type ScenarioCase,
  scenarioRails,
} from '../../../tools/sim/scenario.ts';

const PIECE = 4096;
const LONG = 40_000;
const RAIL = { canPut: true, canGet: true, pipelineBytes: PIECE } as const;

/** The most memory that the receiver had registered at one time. */
function peak(s: Scenario): () => number {
  let bytes = 0;
  s.whenever({ stage: 'arrive' }, () => {
    bytes = Math.max(bytes, s.world.registeredBytes(1));
    return undefined;
  });
  return () => bytes;
}

function putsOf(s: Scenario): () => number {
  let seen = 0;
  s.whenever({ stage: 'arrive', type: PACKET.PUT }, () => {
    seen++;
    return undefined;
  });
  return () => seen;
}

export function* pipeline(): Iterable<ScenarioCase> {
  for (const rails of [1, 2]) {
    yield {
      name: `pipeline: a long message over ${rails} rails is put, and little of it is registered at a time`,
      run(lab) {
        const s = new Scenario(lab, { rails: scenarioRails(rails, RAIL) });
        const most = peak(s);
        const offers = putsOf(s);
        let fragments = 0;
        s.whenever({ stage: 'arrive', type: PACKET.FRAG }, () => {
          fragments++;
          return undefined;
        });
        s.recv(LONG);
        s.send(LONG);
        s.require('it was put, and not read', () => s.count('puts') > 0 && s.count('gets') === 0);
        s.require('no fragment', () => fragments === 0);
        s.require('every piece was offered on every rail', () => offers() === rails * Math.ceil(LONG / PIECE));
        // Two pieces, and one that has its last bytes still to come.
        s.require('a part of it at a time', () => most() > 0 && most() <= rails * 3 * PIECE);
        s.finish();
      },
    };
  }
  yield {
    name: 'pipeline: what is not longer than a piece is read',
    run(lab) {
      const s = new Scenario(lab, { rails: scenarioRails(2, RAIL) });
      s.recv(PIECE);
      s.send(PIECE);
      s.requireCount('gets');
      s.require('nothing is put', () => s.count('puts') === 0);
      s.finish();
    },
  };
  for (const nth of [1, 4, 9]) {
    for (const fate of Object.keys(FATES) as Fate[]) {
      if (fate === 'half arrived') continue;
      yield {
        name: `pipeline: the rail is lost under PUT ${nth}, ${fate}`,
        run(lab) {
          const s = new Scenario(lab, { rails: scenarioRails(2, RAIL) });
          cutAt(s, PACKET.PUT, fate, {}, nth);
          s.recv(LONG);
          s.send(LONG);
          s.finishHealed();
        },
      };
    }
    yield {
      name: `pipeline: the rail is lost under put ${nth}, and in the restart the other one`,
      run(lab) {
        const s = new Scenario(lab, { rails: scenarioRails(2, RAIL) });
        cutAt(s, 'put', 'half arrived', {}, nth);
        cutAgain(s, 'pass');
        s.recv(LONG);
        s.send(LONG);
        s.requireCount('restarts');
        s.finishHealed();
      },
    };
  }
  yield {
    name: 'pipeline: a rail without the pipeline beside one with it',
    run(lab) {
      const s = new Scenario(lab, {
        rails: [
          { ...SCENARIO_RAIL, ...RAIL },
          { ...SCENARIO_RAIL, latencyUs: 500 },
        ],
      });
      s.recv(LONG);
      s.send(LONG);
      s.requireCount('puts');
      s.finish();
    },
  };
  yield {
    name: 'pipeline: a later piece cannot be registered: the sender is told, and the rest comes in fragments',
    run(lab) {
      const s = new Scenario(lab, { rails: scenarioRails(1, RAIL) });
      let told = 0;
      let fragments = 0;
      s.on({ stage: 'arrive', type: PACKET.PUT }, () => {
        s.link(0).spec.registerRefusedPer10k = 10_000;
        return 'pass';
      });
      s.whenever({ stage: 'arrive', type: PACKET.PUT }, ({ header }) => {
        if (header !== null && new DataView(header.buffer, header.byteOffset).getUint16(OFFSET.putWindow + 2, true) === 0) told++;
        return undefined;
      });
      s.whenever({ stage: 'arrive', type: PACKET.FRAG, piece: 'first' }, () => {
        fragments++;
        return undefined;
      });
      s.recv(LONG);
      s.send(LONG);
      s.requireCount('puts');
      s.require('told once', () => told === 1);
      s.require('fragments for the rest', () => fragments > 0);
      s.finish();
    },
  };
  yield {
    name: 'pipeline: the word that no window follows is lost with another rail: it is said again',
    run(lab) {
      const s = new Scenario(lab, {
        rails: [
          { ...SCENARIO_RAIL, latencyUs: 50 },
          { ...SCENARIO_RAIL, ...RAIL, latencyUs: 500 },
        ],
      });
      let told = 0;
      s.on({ stage: 'arrive', type: PACKET.PUT }, () => {
        s.link(1).spec.registerRefusedPer10k = 10_000;
        return 'pass';
      });
      s.whenever({ stage: 'arrive', type: PACKET.PUT }, ({ header, link }) => {
        if (header === null || new DataView(header.buffer, header.byteOffset).getUint16(OFFSET.putWindow + 2, true) !== 0) return undefined;
        told++;
        if (told > 1) return undefined;
        s.fabric.cut(link);
        return 'lose';
      });
      s.recv(LONG * 2);
      s.send(LONG * 2);
      s.requireLost();
      s.require('said again', () => told >= 2);
      s.finishHealed();
    },
  };
  yield {
    name: 'pipeline: the rail has left the stripe set when the next piece is due, and comes back to it in the same epoch',
    run(lab) {
      const s = new Scenario(lab, { rails: [{ ...SCENARIO_RAIL }, { ...SCENARIO_RAIL, ...RAIL, role: 'standby' }] });
      const [active, standby] = [0, 1];
      const rails = () => s.pml(0).peer(1).bml.rails;
      s.fabric.cut(s.link(active));
      s.until('the active rail is lost', () => s.railsLost >= 2);
      // It takes no data, so that nothing of it is in doubt, and nothing restarts, when it is lost again.
      const { endpoint } = rails()[active];
      const send = endpoint.send.bind(endpoint);
      endpoint.send = (frame) => (takesData || frame.payloadBytes === 0 ? send(frame) : BUSY);
      let takesData = false;
      s.recv(LONG * 20);
      const message = s.send(LONG * 20);
      s.until('it is put over the standby rail', () => s.count('puts') >= 2);
      s.fabric.mend(s.link(active));
      s.until('the active rail is up', () => s.world.allUp);
      s.run(200);
      const waited = !message.done;
      s.require('it waits for the active rail', () => waited);
      s.fabric.cut(s.link(active));
      s.until('all comes over the standby rail', () => message.done);
      s.require('without a restart', () => s.count('restarts') === 0);
      s.require('its epoch is the same', () => rails()[standby].epoch === 1);
      takesData = true;
      s.finishHealed();
    },
  };
}
