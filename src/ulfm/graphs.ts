// The two graphs over which this folder sends: a ring with chords, on which news is flooded, and a binomial tree, on which an agreement
// without failures runs. Both follow from who there is and who is gone, so that nobody has to agree with anybody on them.

/**
 * Whom a process tells that has news: those at distances ±1, ±2, ±4, … of it in the ring of all that there ever were (the binomial graph of
 * Angskun, Bosilca and Dongarra), and in the place of one that is gone the next one in that direction. That is at most 2⌈log2 n⌉ of them, and
 * news reaches everybody within ⌈log2 n⌉ hops. A death changes the neighbours of those alone that it was a neighbour of: in a ring of the
 * living it would shift those of half of the others, who would meet new ones, and make rails to them, in the moment of the failure. Places
 * are 0 to `size` - 1.
 */
export function ringNeighbours(size: number, self: number, isGone: (place: number) => boolean): number[] {
  if (isGone(self)) return [];
  const found = new Set<number>();
  const look = (distance: number, direction: 1 | -1): void => {
    for (let ahead = distance; ahead < size; ahead++) {
      const place = (self + direction * ahead + size) % size;
      if (!isGone(place)) return void found.add(place);
    }
  };
  for (let distance = 1; distance <= size / 2; distance *= 2) {
    look(distance, 1);
    look(distance, -1);
  }
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
