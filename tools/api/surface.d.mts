// Types of surface.mjs, for the configuration of the build and the tests.

/** A docstring: its sentences, the meaning of each parameter, and how the call fails. */
export interface Doc {
  text: string;
  params: Record<string, string>;
  throws: string[];
  isInternal: boolean;
}

export interface Parameter {
  name: string;
  type: string;
  isOptional: boolean;
  text: string;
}

export interface Member {
  name: string;
  kind: 'constructor' | 'method' | 'getter' | 'property';
  isStatic: boolean;
  text: string;
  /** Of a property; of a call what it returns. */
  type: string | undefined;
  doc: Doc;
  /** With what the call has of the one that it is another form of. */
  full?: Doc;
  /** The call that it is another form of. */
  base: string | undefined;
  params?: Parameter[];
  returns?: string;
}

export interface Item {
  name: string;
  isType: boolean;
  kind: 'class' | 'interface' | 'function' | 'const' | 'type';
  doc: Doc;
  file: string;
  text?: string;
  head?: string;
  members?: Member[];
  params?: Parameter[];
  returns?: string;
}

export interface Surface {
  items: Item[];
  imports: Map<string, string>;
}

export const ENTRIES: { index: string; ft: string };
export function readSurface(root?: string, entry?: string): Surface;
export function undocumented(surface: Surface): string[];
export function baseOf(name: string, names: ReadonlySet<string>): string | undefined;
