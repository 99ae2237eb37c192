// `multirail/wasm`: programs of C and C++ that call MPI, as ranks. `node --import multirail/wasm program.wasm` runs one; runWasm() does it from
// JavaScript.
export { runWasm, type WasmOptions } from './run.ts';
