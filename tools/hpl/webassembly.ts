// The parts of the WebAssembly API that are used here, typed: Node's types leave most of it to the browser's.

export interface WasmMemory {
  readonly buffer: ArrayBuffer;
}
export type WasmModule = { readonly brand: 'WasmModule' };
export type WasmKernel = (...values: number[]) => number;

interface WasmApi {
  Memory: new (limits: { initial: number; maximum: number }) => WasmMemory;
  Module: new (bytes: Uint8Array<ArrayBuffer>) => WasmModule;
  Instance: new (module: WasmModule, imports: { env: { memory: WasmMemory } }) => { readonly exports: Record<string, WasmKernel> };
  validate(bytes: Uint8Array<ArrayBuffer>): boolean;
}

export const Wasm = (globalThis as unknown as { WebAssembly: WasmApi }).WebAssembly;
