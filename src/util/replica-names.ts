// What processes are called where each rank may be several: the first replica of a rank is the rank to whoever reads of it, and the others are its
// shadows. Which number is whose replica: src/ft/replica/pairs.ts.

/** The rank that this process is a further replica of; undefined: it is the first one, or each rank is one process. */
export function shadowOf(number: number, processes: number, replicas: number): number | undefined {
  const ranks = processes / replicas;
  return replicas > 1 && number >= ranks && number < processes ? number % ranks : undefined;
}

/** What a replica is called in sentences, by its place among those of its rank. `replicas`: so many there are. */
export function replicaText(index: number, replicas: number): string {
  if (index === 0) return 'lead';
  if (replicas < 3) return 'shadow';
  return index === 1 ? 'first shadow' : 'second shadow';
}

/** "rank 2", "the shadow of rank 2", or, of two, "the first shadow of rank 2". */
export function processName(number: number, processes: number, replicas: number): string {
  const rank = shadowOf(number, processes, replicas);
  if (rank === undefined) return `rank ${number}`;
  return `the ${replicaText(Math.floor((number * replicas) / processes), replicas)} of rank ${rank}`;
}
