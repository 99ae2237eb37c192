// Loads the native part: it finds the package's folder `native`, takes the binary that was built in its folder `addon` or the prebuilt one for
// this platform, and tries it before anything uses it. Without a binary everything else works; `multirail info` shows the reason. The addons
// of the tools, in folders next to it, are loaded in the same way.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Availability, NATIVE_ABI, type NativeAvailability, type NativeBinding } from './binding.ts';

/** `MULTIRAIL_NATIVE=0` in the environment runs without the native part. */
const SWITCH = 'MULTIRAIL_NATIVE';

/** CRC32C of "123456789". */
const KNOWN_CRC = 0xe3069283;

/**
 * This file, or the bundle that holds it. The CommonJS build has no import.meta.url. The ES module build has no __filename, except
 * the global one that is not a path when the program was given by `node -e`.
 */
export function thisFile(): string {
  return typeof __filename === 'string' && isAbsolute(__filename) ? __filename : fileURLToPath(import.meta.url);
}

function isNativeFolder(folder: string): boolean {
  try {
    return (JSON.parse(readFileSync(join(folder, 'addon', 'package.json'), 'utf8')) as { name?: string }).name === 'multirail-native';
  } catch {
    return false;
  }
}

/** The folder `native` of the package: beside `src` or `dist` of this file, or of the installed package when this file was bundled. */
function nativeFolderFrom(from: string): string | undefined {
  for (let folder = dirname(from); ; folder = dirname(folder)) {
    const candidate = join(folder, 'native');
    if (isNativeFolder(candidate)) return candidate;
    if (dirname(folder) === folder) break;
  }
  try {
    const candidate = join(dirname(createRequire(from).resolve('multirail/package.json')), 'native');
    return isNativeFolder(candidate) ? candidate : undefined;
  } catch {
    return undefined;
  }
}

/** The same for the package that this code is part of. */
export const nativeFolder = (): string | undefined => nativeFolderFrom(thisFile());

/** As the folders of prebuilds are named, with the C library where it is not glibc. */
function platformName(): string {
  const musl = process.platform === 'linux' && existsSync('/etc/alpine-release');
  return `${process.platform}-${process.arch}${musl ? ' (musl)' : ''}`;
}

const firstLine = (error: unknown): string => (error instanceof Error ? error.message : String(error)).split('\n')[0];

/**
 * Why a runtime other than Node is not given the native part: it watches descriptors from the event loop of libuv, which these do not have.
 * Bun loads it all the same and ends the process at the first call; Deno refuses to load it.
 */
export function otherRuntime(versions: Readonly<Record<string, string | undefined>>): string | undefined {
  for (const [key, name] of [
    ['bun', 'Bun'],
    ['deno', 'Deno'],
  ]) {
    if (versions[key] !== undefined)
      return `${name} ${versions[key]} has no event loop of libuv, which the native part needs: it is for Node`;
  }
  return undefined;
}

/** The binary in one folder of `native`: the one that was built there, else the prebuilt one for this platform; or why there is none. */
export function binaryIn(folder: string): { path: string } | { missing: string } {
  const require = createRequire(join(folder, 'package.json'));
  try {
    return { path: (require('node-gyp-build') as { path(folder: string): string }).path(folder) };
  } catch (error) {
    if (!firstLine(error).startsWith('No native build')) return { missing: firstLine(error) };
    return { missing: `no prebuilt binary for ${platformName()}; 'npm run build:native' builds one from source` };
  }
}

/** Loads the addon in that folder of `native`, which has to be of that interface. Never throws. */
export function loadAddon<T extends { readonly abi: number }>(name: string, abi: number): Availability<T> {
  const missing = (reason: string): Availability<T> => ({ binding: undefined, reason });
  if (process.env[SWITCH] === '0') return missing(`switched off by ${SWITCH}=0`);
  const other = otherRuntime(process.versions);
  if (other !== undefined) return missing(other);
  if (process.platform !== 'linux') return missing(`no prebuilt binary for ${platformName()}; the native part is for Linux`);
  const folder = nativeFolder();
  if (folder === undefined) return missing(`no folder 'native' of the package above ${dirname(thisFile())}`);
  const found = binaryIn(join(folder, name));
  if ('missing' in found) return missing(found.missing);
  const { path } = found;
  try {
    const binding = createRequire(path)(path) as T;
    if (binding.abi !== abi) return missing(`${path} has interface ${binding.abi}, not ${abi}`);
    // The addon's exports are a hash table to the engine, searched at every call. As a prototype it is a structure, whose functions
    // compiled code knows.
    return { binding: Object.create(binding) as T, reason: undefined, path };
  } catch (error) {
    return missing(`${path} does not load: ${firstLine(error)}`);
  }
}

function tryToLoad(): NativeAvailability {
  const native = loadAddon<NativeBinding>('addon', NATIVE_ABI);
  if (native.binding === undefined) return native;
  const crc = native.binding.crc32c(new TextEncoder().encode('123456789'), 0, 9, 0);
  return crc === KNOWN_CRC ? native : { binding: undefined, reason: `${native.path} computes a wrong checksum` };
}

let loaded: NativeAvailability | undefined;

/** The native part of this thread, or why there is none. Never throws; the first call loads, the others give the same answer. */
export function loadNative(): NativeAvailability {
  if (process.env[SWITCH] === '0') return { binding: undefined, reason: `switched off by ${SWITCH}=0` };
  try {
    loaded ??= tryToLoad();
  } catch (error) {
    loaded = { binding: undefined, reason: firstLine(error) };
  }
  return loaded;
}
