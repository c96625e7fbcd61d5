/** Waiting times between tries: doubling from 0.5 s to 15 s, with a spread so that a room full of browsers doesn't come back at once. */
export class Backoff {
  private tries = 0;

  constructor(private readonly random: () => number = Math.random) {}

  reset(): void {
    this.tries = 0;
  }

  next(): number {
    const full = Math.min(15_000, 500 * 2 ** this.tries++);
    return full / 2 + (full / 2) * this.random();
  }
}
