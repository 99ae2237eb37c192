// The environment: the beginning and the end, versions, times, memory, error codes and error handlers, operations, info objects.
import { hostname } from 'node:os';
import * as abi from '../abi.ts';
import type { Comm } from '../comm.ts';
import { fail, MpiError, ProgramEnd } from '../errors.ts';
import type { Calls, Errhandler, Machine } from '../machine.ts';
import { isPredefinedOp } from '../ops.ts';

const LIBRARY = 'multirail, an MPI over several rails for programs of WebAssembly';

export interface Environment {
  /** Calls that may be made before MPI_Init and after MPI_Finalize. */
  readonly early: Calls;
  readonly calls: Calls;
  /** Calls that give something else than an error code. */
  readonly plain: Record<string, (...args: number[]) => number>;
}

/** Ends MPI: what is to be done before messages stop. */
export type AtFinalize = () => void;

export function environment(m: Machine, begin: () => void, end: AtFinalize): Environment {
  const { memory } = m;

  const init = (): void => {
    if (m.state !== 'BEFORE') throw new ProgramEnd(1, `${m.callName} was called ${m.state === 'ACTIVE' ? 'twice' : 'after MPI_Finalize'}`);
    m.state = 'ACTIVE';
    begin();
  };
  const errhandler = (handle: number): Errhandler | undefined => {
    if (handle === abi.ERRORS_ARE_FATAL || handle === abi.ERRORS_ABORT || handle === abi.ERRORS_RETURN) return undefined;
    return m.errhandlers.find(handle) ?? fail('ERRHANDLER', 'there is no such error handler');
  };
  const createErrhandler = (fn: number, at: number): number => {
    memory.setInt(at, m.errhandlers.add({ fn, isFreed: false, uses: 0 }));
    return 0;
  };
  const setErrhandler = (comm: number, handle: number): number => {
    const c: Comm = m.comm(comm);
    const own = errhandler(handle);
    if (own !== undefined) own.uses++;
    c.errhandler = handle;
    return 0;
  };
  const getErrhandler = (comm: number, at: number): number => {
    memory.setInt(at, m.comm(comm).errhandler);
    return 0;
  };
  const info = (handle: number): Map<string, string> =>
    m.infos.find(handle) ?? fail('INFO', handle === abi.INFO_NULL ? 'the info object is MPI_INFO_NULL' : 'there is no such info object');
  const keyOf = (at: number): string => {
    const key = memory.text(at);
    if (key.length === 0 || key.length >= abi.MAX_INFO_KEY) fail('INFO_KEY', `a key of ${key.length} characters`);
    return key;
  };
  const address = (at: number, into: number): number => {
    memory.setInt(into, at);
    return 0;
  };
  const checkOwn = (code: number): void => {
    if (!m.userCodes.has(code)) fail('ARG', `${code} is no error code that the program has made`);
  };

  const early: Calls = {
    Init: () => {
      init();
      return 0;
    },
    Init_thread: (_argc, _argv, required, provided) => {
      init();
      // There is one thread: whatever it asks of itself holds.
      m.threadLevel = Math.min(required, abi.THREAD_SERIALIZED);
      memory.setInt(provided, m.threadLevel);
      return 0;
    },
    Initialized: (flag) => {
      memory.setInt(flag, m.state === 'BEFORE' ? 0 : 1);
      return 0;
    },
    Finalized: (flag) => {
      memory.setInt(flag, m.state === 'FINALIZED' ? 1 : 0);
      return 0;
    },
    Get_version: (version, subversion) => {
      memory.setInt(version, 4);
      memory.setInt(subversion, 1);
      return 0;
    },
    Get_library_version: (at, length) => {
      memory.setInt(length, memory.setText(at, LIBRARY, 8192));
      return 0;
    },
    Error_class: (code, at) => {
      memory.setInt(at, m.classOf(code));
      return 0;
    },
    Error_string: (code, at, length) => {
      memory.setInt(length, memory.setText(at, m.textOf(code), abi.MAX_ERROR_STRING));
      return 0;
    },
    Add_error_class: (at) => {
      const code = ++m.lastUsedCode;
      m.userCodes.set(code, { errorClass: code, text: '' });
      memory.setInt(at, code);
      return 0;
    },
    Add_error_code: (errorClass, at) => {
      if (!m.userCodes.has(errorClass)) m.classOf(errorClass);
      const code = ++m.lastUsedCode;
      m.userCodes.set(code, { errorClass, text: '' });
      memory.setInt(at, code);
      return 0;
    },
    Add_error_string: (code, at) => {
      const known = m.userCodes.get(code);
      if (known === undefined) return fail('ARG', `${code} is no error code that the program has made`);
      known.text = memory.text(at).slice(0, abi.MAX_ERROR_STRING - 1);
      return 0;
    },
    Remove_error_class: (code) => {
      checkOwn(code);
      m.userCodes.delete(code);
      return 0;
    },
    Remove_error_code: (code) => {
      checkOwn(code);
      m.userCodes.delete(code);
      return 0;
    },
    Remove_error_string: (code) => {
      checkOwn(code);
      (m.userCodes.get(code) as { text: string }).text = '';
      return 0;
    },
    Comm_create_errhandler: createErrhandler,
    File_create_errhandler: createErrhandler,
    Win_create_errhandler: createErrhandler,
    Errhandler_create: createErrhandler,
    Errhandler_free: (at) => {
      const handle = memory.int(at);
      const own = errhandler(handle);
      // Communicators that have it go on with it.
      if (own !== undefined) own.isFreed = true;
      memory.setInt(at, abi.ERRHANDLER_NULL);
      return 0;
    },

    // ---------------------------------------------------------------- info
    Info_create: (at) => {
      memory.setInt(at, m.infos.add(new Map()));
      return 0;
    },
    Info_create_env: (_argc, _argv, at) => {
      memory.setInt(at, m.infos.add(new Map(m.infos.find(abi.INFO_ENV))));
      return 0;
    },
    Info_dup: (handle, at) => {
      memory.setInt(at, m.infos.add(new Map(info(handle))));
      return 0;
    },
    Info_free: (at) => {
      const handle = memory.int(at);
      info(handle);
      if (handle === abi.INFO_ENV) fail('INFO', 'MPI_INFO_ENV cannot be freed');
      m.infos.remove(handle);
      memory.setInt(at, abi.INFO_NULL);
      return 0;
    },
    Info_set: (handle, key, value) => {
      const text = memory.text(value);
      if (text.length >= abi.MAX_INFO_VAL) fail('INFO_VALUE', `a value of ${text.length} characters`);
      info(handle).set(keyOf(key), text);
      return 0;
    },
    Info_get: (handle, key, length, value, flag) => {
      const found = info(handle).get(keyOf(key));
      if (length < 0) fail('ARG', `the length is ${length}`);
      memory.setInt(flag, found === undefined ? 0 : 1);
      if (found !== undefined) memory.setText(value, found, length + 1);
      return 0;
    },
    Info_get_string: (handle, key, length, value, flag) => {
      const found = info(handle).get(keyOf(key));
      memory.setInt(flag, found === undefined ? 0 : 1);
      if (found === undefined) return 0;
      const room = memory.int(length);
      if (room > 0) memory.setText(value, found, room);
      memory.setInt(length, Buffer.byteLength(found) + 1);
      return 0;
    },
    Info_get_valuelen: (handle, key, length, flag) => {
      const found = info(handle).get(keyOf(key));
      memory.setInt(flag, found === undefined ? 0 : 1);
      if (found !== undefined) memory.setInt(length, Buffer.byteLength(found));
      return 0;
    },
    Info_get_nkeys: (handle, at) => {
      memory.setInt(at, info(handle).size);
      return 0;
    },
    Info_get_nthkey: (handle, n, key) => {
      const keys = [...info(handle).keys()];
      if (n < 0 || n >= keys.length) fail('ARG', `there is no key ${n}; there are ${keys.length}`);
      memory.setText(key, keys[n], abi.MAX_INFO_KEY);
      return 0;
    },
    Info_delete: (handle, key) => {
      const text = keyOf(key);
      if (!info(handle).delete(text)) fail('INFO_NOKEY', `there is no key ${text}`);
      return 0;
    },
  };

  const calls: Calls = {
    Finalize: () => {
      end();
      m.state = 'FINALIZED';
      return 0;
    },
    Abort: (_comm, code) => {
      throw new ProgramEnd(code === 0 ? 1 : code, `MPI_Abort was called with the error code ${code}`);
    },
    Query_thread: (at) => {
      memory.setInt(at, m.threadLevel);
      return 0;
    },
    Is_thread_main: (at) => {
      memory.setInt(at, 1);
      return 0;
    },
    Get_processor_name: (at, length) => {
      memory.setInt(length, memory.setText(at, hostname(), abi.MAX_PROCESSOR_NAME));
      return 0;
    },
    Get_address: address,
    Address: address,
    Alloc_mem: (bytes, _info, at) => {
      if (bytes < 0) fail('ARG', `${bytes} bytes`);
      const memoryAt = m.malloc(bytes);
      if (memoryAt === 0 && bytes > 0) fail('NO_MEM', `there is no memory for ${bytes} bytes`);
      memory.setInt(at, memoryAt);
      return 0;
    },
    Free_mem: (at) => {
      m.release(at);
      return 0;
    },
    Pcontrol: () => 0,
    Comm_set_errhandler: setErrhandler,
    Errhandler_set: setErrhandler,
    Comm_get_errhandler: getErrhandler,
    Errhandler_get: getErrhandler,
    Comm_call_errhandler: (comm, code) => {
      const c = m.comm(comm);
      m.handle(c, code, '');
      return 0;
    },
    File_set_errhandler: () => 0,
    File_get_errhandler: (_file, at) => {
      memory.setInt(at, abi.ERRORS_RETURN);
      return 0;
    },
    Op_create: (fn, commute, at) => {
      memory.setInt(at, m.ops.add({ fn, commute: commute !== 0, wide: false, byType: new Map() }));
      return 0;
    },
    Op_create_c: (fn, commute, at) => {
      memory.setInt(at, m.ops.add({ fn, commute: commute !== 0, wide: true, byType: new Map() }));
      return 0;
    },
    Op_free: (at) => {
      const handle = memory.int(at);
      if (isPredefinedOp(handle)) fail('OP', 'a predefined operation cannot be freed');
      if (m.ops.find(handle) === undefined) fail('OP', 'there is no such operation');
      m.ops.remove(handle);
      memory.setInt(at, abi.OP_NULL);
      return 0;
    },
    Op_commutative: (handle, at) => {
      const own = m.ops.find(handle);
      if (own === undefined && !isPredefinedOp(handle)) throw new MpiError('OP', 'there is no such operation');
      memory.setInt(at, own === undefined || own.commute ? 1 : 0);
      return 0;
    },
  };

  const plain: Environment['plain'] = {
    Wtime: () => (performance.timeOrigin + performance.now()) / 1000,
    Wtick: () => 1e-6,
    Aint_add: (base, by) => (base + by) | 0,
    Aint_diff: (a, b) => (a - b) | 0,
  };
  return { early, calls, plain };
}
