// Types of frame-layout.mjs, for tests in TypeScript.
export const HEADER: string;
export function frameLayout(): string;
