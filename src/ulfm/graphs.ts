// The two graphs over which this folder sends: a ring with chords, on which news is flooded, and a binomial tree, on which an agreement
// without failures runs. Both are functions of the living alone, so that nobody has to agree with anybody on them.

/**
 * Whom a process tells that has news: those at distances ±1, ±2, ±4, … of it in the ring of the living (the binomial graph of Angskun,
 * Bosilca and Dongarra). That is at most 2⌈log2 n⌉ of them, and news reaches everybody within ⌈log2 n⌉ hops. `living` is ascending and
 * holds `self`.
 */
export function ringNeighbours(living: readonly number[], self: number): number[] {
  const { length } = living;
  const at = indexIn(living, self);
  if (at < 0) return [];
  const found = new Set<number>();
  for (let distance = 1; distance <= length / 2; distance *= 2) {
    found.add(living[(at + distance) % length]);
    found.add(living[(at + length - distance) % length]);
  }
  found.delete(self);
  return [...found];
}

/** Where `value` is in an ascending list; -1 when it is not in it. */
export function indexIn(ascending: readonly number[], value: number): number {
  let low = 0;
  let high = ascending.length - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    if (ascending[middle] === value) return middle;
    if (ascending[middle] < value) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

/** How many nodes the whole subtree of a node has, if the tree goes on that far: its lowest set bit. The root's has no bound. */
function span(index: number, size: number): number {
  return index === 0 ? size : index & -index;
}

/** The parent of a node in the binomial tree of nodes 0, 1, 2, …: its lowest set bit taken away. The root, 0, has none: -1. */
export function treeParent(index: number): number {
  return index === 0 ? -1 : index & (index - 1);
}

/** The children of a node in the binomial tree of `size` nodes, those with the largest subtrees first. */
export function treeChildren(index: number, size: number): number[] {
  const children: number[] = [];
  let bit = 1;
  while (bit < span(index, size)) bit *= 2;
  for (bit /= 2; bit >= 1; bit /= 2) if (index + bit < size) children.push(index + bit);
  return children;
}

/** The subtree of a node is the nodes from itself up to here, which is not in it. */
export function treeEnd(index: number, size: number): number {
  return Math.min(size, index + span(index, size));
}

/** The longest way from the root of a binomial tree of `size` nodes to a node: ⌊log2 size⌋. */
export function treeDepth(size: number): number {
  return 31 - Math.clz32(size);
}
