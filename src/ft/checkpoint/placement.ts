// Who holds whose copies: formula (1) of paper 000 over the failure domains of a communicator. Domains are positions: they are fixed by the
// hosts of its ranks when it begins, and a successor takes the position of the one that it succeeds, wherever it runs.
import { MultirailError } from '../../errors.ts';
import { receiver, type Scheme } from '../plan/scheme.ts';

export class Placement {
  readonly scheme: Scheme;
  readonly size: number;
  /** Ranks of each domain, ascending; domains in the order of their lowest rank. */
  readonly domains: readonly (readonly number[])[];
  /** By rank. */
  private readonly places: readonly { readonly domain: number; readonly index: number }[];
  /** By slot class, then by rank. */
  private readonly ownersByClass: (readonly (readonly number[])[] | undefined)[] = [];

  /** `domainOf`: a domain's name for each rank. */
  constructor(domainOf: readonly (string | number)[], duplication: number, depth: number) {
    const domains = new Map<string | number, number[]>();
    const places: { domain: number; index: number }[] = [];
    for (const [rank, name] of domainOf.entries()) {
      const ranks = domains.get(name) ?? [];
      domains.set(name, ranks);
      places.push({ domain: [...domains.keys()].indexOf(name), index: ranks.length });
      ranks.push(rank);
    }
    this.size = domainOf.length;
    this.domains = [...domains.values()];
    this.places = places;
    this.scheme = { domains: this.domains.length, duplication, depth };
  }

  /** The ranks that hold a copy of that rank's image of save `k`, copy 1 first. */
  holders(rank: number, k: number): number[] {
    const { domain, index } = this.place(rank);
    const holders: number[] = [];
    for (let j = 1; j <= this.scheme.duplication; j++) {
      const ranks = this.domains[receiver(domain, j, k, this.scheme)];
      const holder = ranks[index % ranks.length];
      if (holder !== rank && !holders.includes(holder)) holders.push(holder);
    }
    return holders;
  }

  /** The ranks whose copies that rank holds at save `k`, ascending. */
  owners(rank: number, k: number): readonly number[] {
    this.place(rank);
    const slotClass = k % this.scheme.depth;
    let byRank = this.ownersByClass[slotClass];
    if (byRank === undefined) {
      const lists: number[][] = Array.from({ length: this.size }, () => []);
      for (let owner = 0; owner < this.size; owner++) for (const holder of this.holders(owner, slotClass)) lists[holder].push(owner);
      byRank = lists;
      this.ownersByClass[slotClass] = byRank;
    }
    return byRank[rank];
  }

  domainOf(rank: number): number {
    return this.place(rank).domain;
  }

  private place(rank: number): { readonly domain: number; readonly index: number } {
    const place = this.places[rank];
    if (place === undefined) throw new MultirailError('ERR_RANK', `rank ${rank}: expected a rank from 0 to ${this.size - 1}`);
    return place;
  }
}
