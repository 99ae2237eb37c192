// Types of bundle.mjs, for the tests.
export interface Bundle {
  folder: string;
  /** The bundled file of a program, by the name of its source file. */
  pathOf(name: string): string;
  dispose(): void;
}
export function bundle(programs: readonly string[]): Promise<Bundle>;

export function bundleInto(
  folder: string,
  entryPoints: string[] | Record<string, string>,
  options?: import('esbuild').BuildOptions,
): Promise<void>;
