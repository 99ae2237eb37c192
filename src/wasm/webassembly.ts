// WebAssembly as Node has it, for the types that are used here: the types of Node 20 name few of them.

export interface WasmMemory {
  readonly buffer: ArrayBufferLike;
}

export interface WasmTable {
  get(index: number): ((...args: number[]) => number) | null;
  readonly length: number;
}

export interface WasmInstance {
  readonly exports: Readonly<Record<string, unknown>>;
}

export interface WasmImport {
  readonly module: string;
  readonly name: string;
  readonly kind: string;
}

export type WasmModule = object;

interface WebAssemblyApi {
  readonly Module: {
    new (bytes: Uint8Array): WasmModule;
    imports(module: WasmModule): WasmImport[];
    exports(module: WasmModule): { readonly name: string; readonly kind: string }[];
  };
  readonly Instance: new (module: WasmModule, imports: Record<string, Record<string, unknown>>) => WasmInstance;
  readonly Memory: new (type: { initial: number; maximum: number; shared: boolean }) => WasmMemory;
  readonly RuntimeError: new (text?: string) => Error;
  readonly CompileError: new (text?: string) => Error;
}

export const wasm: WebAssemblyApi = (globalThis as unknown as { WebAssembly: WebAssemblyApi }).WebAssembly;
