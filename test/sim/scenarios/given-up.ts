// Sends that their user gives up, at moments from the first to the last: with fragments and with puts, over links that can copy what waits
// and over links that cannot tell, calm and with a rail that is cut afterwards. The world overwrites the buffer when the send has ended.
import { Scenario, type ScenarioCase, scenarioRails } from '../../../tools/sim/scenario.ts';

const LONG = 40_000;
const KINDS = {
  fragments: {},
  'fragments over links that cannot tell': { letsGo: false },
  puts: { canPut: true, canGet: true },
  'puts in pieces': { canPut: true, canGet: true, pipelineBytes: 4096 },
} as const;

export function* givenUp(): Iterable<ScenarioCase> {
  for (const [kind, rail] of Object.entries(KINDS)) {
    for (const afterUs of [0, 100, 400, 1500, 4000, 8000, 12_000]) {
      for (const fate of ['no cut', 'lost', 'delivered', 'half'] as const) {
        yield {
          name: `given up after ${afterUs} us: ${kind}, ${fate}`,
          run(lab) {
            const s = new Scenario(lab, { rails: scenarioRails(2, rail) });
            s.recv(LONG);
            const sent = s.world.isend(0, 1, 0, 0, LONG, false, false, afterUs);
            if (fate !== 'no cut') {
              s.fabric.at(s.fabric.nowUs + afterUs + 200, () => s.fabric.cut(s.link(1), { inFlight: fate }));
            }
            // Otherwise it may have to wait, and ends well when all has arrived meanwhile.
            if (kind === 'fragments') s.require('it ended by being given up', () => sent.request?.error?.code === 'ERR_TIMEOUT');
            if (fate === 'no cut') s.finish();
            else s.finishHealed();
          },
        };
      }
    }
  }
  yield {
    name: 'given up with no room for a copy: the send ends when its message has arrived',
    run(lab) {
      const s = new Scenario(lab, { params: { pml_abandoned_bytes_max: '1000' } });
      const sent = s.world.isend(0, 1, 0, 0, LONG, false, false, 100);
      s.run(100);
      s.require('it ended well', () => sent.done && sent.request?.error === undefined);
      if (sent.done) throw new Error('scenario: it ended although nothing has received it');
      s.recv(LONG);
      s.finish();
    },
  };
}
