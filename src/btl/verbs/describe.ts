// What `multirail info` says about RDMA devices.
import type { Params } from '../btl.ts';
import { isPortWanted, selectPorts } from './module.ts';
import { LocalPort, VerbsDevice } from './ports.ts';
import { loadRdma } from './rdma.ts';

export interface RdmaPortInfo {
  name: string;
  /** ACTIVE, DOWN, … */
  state: string;
  link: 'infiniband' | 'ethernet';
  gid: string;
  gidIndex: number;
  lid: number;
  bandwidthMBps: number;
  /** What it is used for, or why not. */
  use: string;
}

/** The devices of this host with their ports, as rails would use them; the reason alone where there are no devices or where they cannot be asked. */
export function describeDevices(params: Params): { ports: RdmaPortInfo[]; reasons: string[] } {
  const { rdma, reason } = loadRdma();
  if (rdma === undefined) return { ports: [], reasons: [reason ?? ''] };
  const names = rdma.devices().map(({ name }) => name);
  const wanted = selectPorts(names, params);
  const ports: RdmaPortInfo[] = [];
  const reasons: string[] = [];
  for (const name of names) {
    let device: VerbsDevice | undefined;
    try {
      device = new VerbsDevice(rdma, name, 0);
      for (let number = 1; number <= device.attributes.ports; number++) {
        const port = new LocalPort(rdma, device, number, params.int('btl_verbs_gid_index'));
        const { state } = device.handle.queryPort(number);
        const isWanted = wanted.includes(name) && isPortWanted(port.name, name, params);
        ports.push({
          name: port.name,
          state: rdma.nameOf(rdma.PORT_STATE, state),
          link: port.link,
          gid: Buffer.from(port.gid)
            .toString('hex')
            .replace(/(.{4})(?=.)/g, '$1:'),
          gidIndex: port.gidIndex,
          lid: port.lid,
          bandwidthMBps: port.bandwidthMBps,
          use: useOf(port, isWanted),
        });
      }
    } catch (error) {
      reasons.push(`${name} cannot be opened: ${(error as Error).message}`);
    } finally {
      device?.close();
    }
  }
  return { ports, reasons };
}

function useOf(port: LocalPort, isWanted: boolean): string {
  if (!isWanted) return 'not used (see btl_verbs_if_include and btl_verbs_if_exclude)';
  if (port.fabric === '') return 'not used: it has no address (GID)';
  const network = port.link === 'ethernet' ? `RoCE, network ${port.fabric}` : `InfiniBand, subnet ${port.fabric}`;
  return port.isActive ? network : `${network}; used once it is up`;
}
