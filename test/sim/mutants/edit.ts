// How a planted mistake changes the production code.

/** A text that occurs exactly once in its file, and what stands there instead. */
export interface Edit {
  /** From the root of the checkout. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export const edit = (file: string, find: string, replace: string): Edit => ({ file, find, replace });
