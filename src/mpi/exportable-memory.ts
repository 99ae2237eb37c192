// Memory that other ranks of this host may map, of whichever transport has it.
import type { ExportableMemory } from '../pml/message-log.ts';
import type { Engine } from '../progress/engine.ts';

export function exportableMemory({ modules }: Pick<Engine, 'modules'>): ExportableMemory {
  return {
    make: (bytes) => {
      for (const module of modules) {
        const memory = module.exportMemory?.(bytes);
        if (memory !== undefined) return memory;
      }
      return undefined;
    },
    drop: (memory) => {
      for (const module of modules) module.dropMemory?.(memory);
    },
  };
}
