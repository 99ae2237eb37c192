// Warnings of a job that survives failures, as Node prints them.

/** What the job goes on in spite of. */
export function warnAsRank(rank: number, text: string): void {
  process.emitWarning(`rank ${rank}: ${text}`, { type: 'MultirailWarning', code: 'MULTIRAIL_FT' });
}
