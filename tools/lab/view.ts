// What a process needs to know about a lab that another one may hold: names, rates, addresses.
import { MultirailError } from '../../src/errors.ts';
import { labUnavailable } from './available.ts';
import { Lab, type LabOptions } from './lab.ts';
import type { NamedRail } from './rails.ts';

export interface LabView {
  /** Common part of the namespaces' names. */
  name: string;
  rails: readonly NamedRail[];
  /** By node. */
  namespaces: readonly string[];
  /** IPv4 addresses, by node and rail. */
  addresses: readonly (readonly string[])[];
  /** How TCP on the nodes finds its rate. */
  congestionControl: string;
}

export function viewOf(lab: Lab, rails: readonly NamedRail[]): LabView {
  const nodes = Array.from({ length: lab.nodeCount }, (_, node) => node);
  return {
    name: lab.name,
    rails,
    congestionControl: lab.congestionControl,
    namespaces: nodes.map((node) => lab.namespace(node)),
    addresses: nodes.map((node) => rails.map((_, rail) => lab.address(node, rail))),
  };
}

/** What may be said of a lab besides its nodes and rails. */
export type LabSettings = Pick<LabOptions, 'seed' | 'congestionControl'>;

/** Builds a lab. ERR_SUPPORT, saying what is missing, where none can be. */
export async function createLab(nodes: number, rails: readonly NamedRail[], settings: LabSettings = {}): Promise<Lab> {
  const missing = labUnavailable();
  if (missing !== undefined) throw new MultirailError('ERR_SUPPORT', missing);
  return await Lab.create({ nodes, rails, ...settings });
}
