// The verbs component: works where node-rdma finds libibverbs and a device, and where the native part polls the descriptors.
import { loadNative } from '../../native/load.ts';
import type { BtlComponent, Params } from '../btl.ts';
import { selectPorts, VerbsModule } from './module.ts';
import { loadRdma } from './rdma.ts';

export const verbsComponent: BtlComponent = {
  name: 'verbs',
  description: 'InfiniBand and RoCE: reliable-connected queue pairs of libibverbs.',
  unavailable(params: Params) {
    const { rdma, reason } = loadRdma();
    if (rdma === undefined) return reason;
    const native = loadNative().reason;
    if (native !== undefined) return `the native part is missing: ${native}`;
    const devices = rdma.devices();
    if (devices.length === 0) {
      const kernel = rdma.devicesOfKernel();
      return kernel.length === 0
        ? 'this host has no RDMA device'
        : `libibverbs has no driver for ${kernel.join(', ')} (Debian package ibverbs-providers)`;
    }
    const names = devices.map(({ name }) => name);
    return selectPorts(names, params).length > 0
      ? undefined
      : `btl_verbs_if_include and btl_verbs_if_exclude leave none of ${names.join(', ')}`;
  },
  create: (context) => new VerbsModule(context, () => performance.now()),
};
