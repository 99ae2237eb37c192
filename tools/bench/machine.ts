// On which machine something was measured; a figure says nothing without it.
import { cpus, loadavg, release } from 'node:os';

export interface MachineInfo {
  cpu: string;
  cpus: number;
  platform: string;
  kernel: string;
  node: string;
  /** Load of the last minute, before the run. */
  load: number;
  date: string;
}

export function machineInfo(): MachineInfo {
  const list = cpus();
  return {
    cpu: (list[0]?.model ?? 'unknown').trim(),
    cpus: list.length,
    platform: `${process.platform} ${process.arch}`,
    kernel: release(),
    node: process.version,
    load: Math.round(loadavg()[0] * 100) / 100,
    date: new Date().toISOString(),
  };
}

/** The machine alone. */
export const describeHost = (info: MachineInfo): string =>
  `${info.cpus} × ${info.cpu}, ${info.platform}, kernel ${info.kernel}, Node ${info.node}`;

/** The machine at the beginning of a measurement. */
export const describeMachine = (info: MachineInfo): string =>
  `${describeHost(info)}, load ${info.load} before the run, ${info.date.slice(0, 10)}`;
