// The types of merge-chunks.mjs.

interface Output {
  entryPoint?: string;
  imports: readonly { path: string; kind: string }[];
  exports: readonly string[];
}

export interface Merge {
  /** Source file of an entry, or of what is imported dynamically. */
  entry: string;
  /** Name of the file that holds what it needs from then on, as far as no merge before it does. */
  into: string;
  /** The entry itself is in there, too: nobody imports it by the name of its file. */
  withEntry: boolean;
}

/** @param outputs What esbuild has written, as its metafile says. */
export function mergeChunks(outputs: Readonly<Record<string, Output>>, merges: readonly Merge[]): Promise<void>;
