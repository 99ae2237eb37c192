// Types of declarations.mjs, for the configuration of the build and the tests.
import type { Surface } from './surface.mjs';

export function declarationsOf(surface: Surface): string;
export function writeDeclarations(folder: string, root: string): void;
