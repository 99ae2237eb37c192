// Types of build-page.mjs.
export function buildPage(folder: string): Promise<void>;
